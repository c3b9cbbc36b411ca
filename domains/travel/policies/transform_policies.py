"""Policies of Transform flows.

The default policy does all of them: a first tool makes an offer or a quote, its summary is
confirmed, and a second tool carries it out.
"""
