"""The services of the analytics domain, and the providers of its entities."""

from domains.analytics.catalogue import columns, tables
from domains.analytics.charts import Charts
from domains.analytics.exports import Exports
from domains.analytics.schedules import Schedules
from domains.analytics.tables import Tables
from parley import Documents

__all__ = ["Charts", "Documents", "Exports", "Schedules", "Tables", "columns", "tables"]
