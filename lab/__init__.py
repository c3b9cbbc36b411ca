"""Tools for people who build and judge assistants: evaluation, fault injection, replay, goals and soak tests."""
