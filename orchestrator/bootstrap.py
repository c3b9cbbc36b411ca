"""Wires adapters into an Agent and its runtime: the only place that knows every part."""
