"""None of its own."""
