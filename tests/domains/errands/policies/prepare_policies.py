"""Policies of Prepare flows (empty)."""
