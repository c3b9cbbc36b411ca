"""Policies of Converse flows. Empty: the ontology declares their answers."""
