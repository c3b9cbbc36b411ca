"""Ports: the protocols that adapters implement. In-memory and PostgreSQL stores pass the same contract tests."""
