"""Changes of the dialogue state: corrections, inheritance, the steps of plans, and repair."""
