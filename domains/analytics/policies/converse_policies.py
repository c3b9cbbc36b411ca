"""Policies of Converse flows. The domain has none: its answers are declared in the ontology."""
