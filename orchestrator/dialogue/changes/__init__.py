"""Changes of several flows at once: corrections, what a task takes over, the steps of a plan, and repair."""
