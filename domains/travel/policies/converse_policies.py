"""Policies of Converse flows. Empty, because the ontology declares their answers."""
