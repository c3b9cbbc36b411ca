"""A package, so that its stack and its browser end with its last test."""
