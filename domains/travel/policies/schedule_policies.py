"""Policies of Schedule flows; none in this domain."""
