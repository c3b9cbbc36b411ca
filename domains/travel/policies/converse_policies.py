"""Policies of Converse flows; none in this domain, because the ontology declares its answers."""
