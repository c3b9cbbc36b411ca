"""Records and rules of durable turns: submission, lease, steps, commit and events."""
