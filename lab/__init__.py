"""Development tools for assistants: evaluation, fault injection, replay, simulated goals and soak tests."""
