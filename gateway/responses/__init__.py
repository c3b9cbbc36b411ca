"""Response models: what each call answers, as FastAPI serialises and documents it."""
