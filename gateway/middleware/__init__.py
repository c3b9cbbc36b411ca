"""ASGI middleware around every request: bounds, hosts, security headers, metrics."""
