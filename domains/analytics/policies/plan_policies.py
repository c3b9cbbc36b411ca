"""Policies of Plan flows. The domain has none yet."""
