"""PEX, the policy executor: runs the active flow through its policy, in the order of `steps.STEPS`."""
