"""Changes to the dialogue state: corrections, inherited values, plan steps and repairs."""
