"""Development tools for assistants: evaluation, fault injection, replay, simulated users and soak tests."""
