"""Simulated users with goals, drawn from a domain's own flows, slots and vocabulary."""
