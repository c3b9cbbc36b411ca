"""Policies of Plan flows (empty)."""
