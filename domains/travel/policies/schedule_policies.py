"""Policies of Schedule flows. The domain has none."""
