"""Fault injection: run a domain's conversations with faults at every step, and grade the outcomes."""
