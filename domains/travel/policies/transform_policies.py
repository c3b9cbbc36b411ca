"""Policies of Transform flows, which all use the default policy.

A first tool makes an offer or a quote, the user confirms its summary, and a second tool executes it.
"""
