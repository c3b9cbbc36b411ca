"""The one interface to models (CO-2): prompts, and the way from a prompt to a usable answer."""
