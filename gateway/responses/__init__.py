"""Response models, as FastAPI serializes and documents them."""
