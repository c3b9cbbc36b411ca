"""Policies of Converse flows (empty)."""
