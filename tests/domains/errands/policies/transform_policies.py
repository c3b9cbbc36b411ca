"""Policies of Transform flows: a skill runs an errand."""
