"""Records and rules for durable turns: submission, lease, steps, commit and events."""
