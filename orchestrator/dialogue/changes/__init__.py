"""Changes of several flows at once: a correction with what hangs on it, and the steps of a plan."""
