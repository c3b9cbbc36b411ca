"""Plans: decomposition of a request into steps, replanning after each step, and the goal check."""
