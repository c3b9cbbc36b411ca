"""ASGI middleware for every request: limits, hosts, security headers, metrics."""
