"""Plans: from a request to steps, what becomes of them after each one, and whether the goal is met."""
