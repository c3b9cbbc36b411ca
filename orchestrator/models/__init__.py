"""Model calls (CO-2): prompts, requests, retries and validation of answers."""
