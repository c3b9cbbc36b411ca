"""Storage formats of states and events: split into parts, several per row."""
