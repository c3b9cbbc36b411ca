"""The only interface to models (CO-2): prompts, and everything between a prompt and a usable answer."""
