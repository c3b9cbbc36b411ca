"""Policies of Read flows (empty)."""
