"""Policies of Prepare flows. The domain has none: offers and quotes are tools of the flows that use them."""
