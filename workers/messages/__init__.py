"""Broker messages: validation, redaction, fair order and recovery."""
