"""Model calls (CO-2): prompts, and everything between a prompt and a usable answer."""
