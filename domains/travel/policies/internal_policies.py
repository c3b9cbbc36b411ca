"""Policies of Internal flows. Empty: this domain has none."""
