"""Policies of Schedule flows. Empty, because this domain has no Schedule flows."""
