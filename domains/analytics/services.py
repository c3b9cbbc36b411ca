"""The analytics services and entity providers, as named in tools.yaml and ontology.yaml."""

from domains.analytics.catalogue import columns, tables
from domains.analytics.charts import Charts
from domains.analytics.exports import Exports
from domains.analytics.schedules import Schedules
from domains.analytics.tables import Tables
from parley import Documents

__all__ = ["Charts", "Documents", "Exports", "Schedules", "Tables", "columns", "tables"]
