"""The HTTP door: FastAPI over the ports. It never imports worker code."""
