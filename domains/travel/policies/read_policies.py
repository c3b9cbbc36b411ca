"""Policies of Read flows: searches and look-ups, which the default policy carries out as they are declared."""
