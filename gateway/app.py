"""The gateway application."""
