"""Name the services of the analytics domain, and the providers of its entities."""

from domains.analytics.catalogue import columns, groups, tables
from domains.analytics.tools.charts import Charts
from domains.analytics.tools.edits import Edits
from domains.analytics.tools.exports import Exports
from domains.analytics.tools.month_changes import MonthChanges
from domains.analytics.tools.reshaping import Reshaping
from domains.analytics.tools.schedules import Schedules
from domains.analytics.tools.steps import Steps
from domains.analytics.tools.tables import Tables
from orchestrator import Documents

__all__ = [
    "Charts",
    "Documents",
    "Edits",
    "Exports",
    "MonthChanges",
    "Reshaping",
    "Schedules",
    "Steps",
    "Tables",
    "columns",
    "groups",
    "tables",
]
