"""The policy executor (PEX), which runs the active flow through its policy in `steps.STEPS` order."""
