"""The flows that come with the system."""

from __future__ import annotations

from internal_flows.stages import InternalFlow

FLOWS: tuple[type[InternalFlow], ...] = ()
