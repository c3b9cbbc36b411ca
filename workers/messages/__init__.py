"""Broker messages: validation, redaction, fair scheduling across tenants, and recovery."""
