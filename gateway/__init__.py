"""The HTTP API, a FastAPI application built on `orchestrator.ports`. It never imports worker code."""
