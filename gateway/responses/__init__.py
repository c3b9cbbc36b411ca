"""Response models, which FastAPI serializes and documents."""
