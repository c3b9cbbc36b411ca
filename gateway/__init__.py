"""The HTTP interface: FastAPI over the ports. It never imports worker code."""
