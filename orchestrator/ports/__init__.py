"""Ports: the protocols that adapters implement. All adapters of a port pass the same contract tests."""
