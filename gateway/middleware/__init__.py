"""ASGI middleware for every request: limits, host checks, security headers and metrics."""
