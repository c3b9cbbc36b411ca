"""The HTTP API, a FastAPI application. It never imports worker code."""
