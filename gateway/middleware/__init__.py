"""ASGI middleware around every request: limits, hosts, security headers, metrics."""
