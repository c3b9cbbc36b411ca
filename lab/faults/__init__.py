"""Replays a domain's conversations with faults injected at every step, and grades the outcomes."""
