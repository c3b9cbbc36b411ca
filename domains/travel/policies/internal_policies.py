"""Policies of Internal flows; none in this domain."""
