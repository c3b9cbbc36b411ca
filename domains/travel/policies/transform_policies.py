"""Policies of Transform flows. Empty, because the default policy suffices."""
