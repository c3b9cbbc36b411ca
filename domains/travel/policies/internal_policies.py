"""Policies of Internal flows. Empty, because this domain has no Internal flows."""
