"""Skills: flows that a language model carries out with a few tools (PX-5, PX-6, PX-11)."""
