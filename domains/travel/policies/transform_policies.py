"""Policies of Transform flows. Empty: the default policy suffices."""
