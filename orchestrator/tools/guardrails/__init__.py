"""Guardrails: static checks of model-written code before it runs (PX-10)."""
