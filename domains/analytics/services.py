"""The services of the analytics domain, and the providers of its entities."""

from domains.analytics.catalogue import columns, groups, tables
from domains.analytics.changes import Changes
from domains.analytics.charts import Charts
from domains.analytics.joining import Joinery
from domains.analytics.papers import Papers, Schedules
from domains.analytics.reading import Tables
from domains.analytics.shaping import Workshop

__all__ = [
    "Changes",
    "Charts",
    "Joinery",
    "Papers",
    "Schedules",
    "Tables",
    "Workshop",
    "columns",
    "groups",
    "tables",
]
