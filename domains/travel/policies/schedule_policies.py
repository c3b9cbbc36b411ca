"""Policies of Schedule flows. Empty: this domain has none."""
