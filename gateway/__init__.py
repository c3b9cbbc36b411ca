"""The HTTP API: FastAPI on top of the ports. Never imports worker code."""
