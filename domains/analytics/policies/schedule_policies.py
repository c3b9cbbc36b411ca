"""Policies of Schedule flows: standing orders for reports."""

from domains.analytics.policy import TablePolicy


class Delivering(TablePolicy):
    """Carried out as declared."""
