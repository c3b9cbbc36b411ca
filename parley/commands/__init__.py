"""One file per group of commands; each is an edge that talks to people."""
