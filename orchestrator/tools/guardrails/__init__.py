"""Guardrails for code that a model wrote: pure checks before anything runs (PX-10)."""
