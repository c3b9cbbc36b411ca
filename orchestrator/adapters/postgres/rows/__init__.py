"""Storage formats of states and events."""
