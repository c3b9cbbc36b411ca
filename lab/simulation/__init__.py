"""Simulated users whose goals come from a domain's flows, slots and vocabulary."""
