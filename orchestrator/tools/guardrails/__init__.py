"""Guardrails for model-written code: pure checks before anything runs (PX-10)."""
