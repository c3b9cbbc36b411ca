"""Policies of Transform flows: an errand is run by its skill."""
