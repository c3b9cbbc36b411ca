"""The vocabulary of durability: turn, lease, commit, step, event. Records only."""
