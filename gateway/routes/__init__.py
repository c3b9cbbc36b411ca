"""The calls of the interfaces, one file per kind of thing."""
