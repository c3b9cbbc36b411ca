"""Storage formats for states and events."""
