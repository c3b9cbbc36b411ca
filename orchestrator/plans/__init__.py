"""Plans: from a request to steps, the changes after each step, and the check of the goal."""
