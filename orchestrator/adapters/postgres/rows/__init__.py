"""How rows hold states and events: in parts, several together."""
