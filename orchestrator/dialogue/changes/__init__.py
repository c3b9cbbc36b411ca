"""Changes of several flows at once: corrections, inheritance, the steps of a plan, and repair."""
