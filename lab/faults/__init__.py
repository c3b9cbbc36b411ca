"""Replay of a domain's conversations with faults injected at every step, and a grade of the outcome."""
