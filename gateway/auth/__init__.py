"""Callers and their permissions: credentials, rules per route, rate limits and listening addresses."""
