"""Records of durable execution: turn, lease, commit, step, event."""
