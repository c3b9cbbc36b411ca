"""The flows that come with the system."""

from internal_flows.housekeeping import maintenance, session

FLOWS = (*session.FLOWS, *maintenance.FLOWS)
