"""The HTTP API, a FastAPI application on the ports. Never imports worker code."""
