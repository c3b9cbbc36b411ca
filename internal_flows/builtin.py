"""Parley's built-in background flows."""

from internal_flows import maintenance, session

FLOWS = (*session.FLOWS, *maintenance.FLOWS)
