"""Run a domain's conversations with faults injected at every step, and grade the outcomes."""
