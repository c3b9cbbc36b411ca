"""Policies of Prepare flows: changes of a table, confirmed where something would be lost."""

from domains.analytics.policy import TablePolicy


class Tidying(TablePolicy):
    """Carried out as declared."""
