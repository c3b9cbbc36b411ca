"""Replay of a domain's conversations with faults injected at every step, and grading of the outcome."""
