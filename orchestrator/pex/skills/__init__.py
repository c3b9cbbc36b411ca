"""Skills: flows that a language model executes with a few tools (PX-5, PX-6, PX-11)."""
