"""Ports: one Protocol per file, each with at least two implementations that pass one contract suite."""
