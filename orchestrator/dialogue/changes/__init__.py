"""Changes that involve several flows: corrections, inheritance, the steps of a plan, and repair."""
