"""Policies of Internal flows (empty)."""
