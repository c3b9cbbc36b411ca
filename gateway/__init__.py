"""The HTTP API, a FastAPI application on the ports. It never imports worker code."""
