"""Policies of Schedule flows (empty)."""
