"""PEX, the policy executor: carries out the active flow by its policy, in the order of `steps.STEPS`."""
