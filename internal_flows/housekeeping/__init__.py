"""The flows that come with the system."""

from __future__ import annotations

from internal_flows.housekeeping.gather_context import GatherContext, HandOverContext
from internal_flows.housekeeping.memory import DistilPreferences, TidyScratchpad
from internal_flows.housekeeping.retention import ExpireSessions, PruneArchive, PruneRuntime
from internal_flows.housekeeping.states import AbandonFlows, RepairState
from internal_flows.housekeeping.summarize_session import SummarizeSession
from internal_flows.stages import InternalFlow

FLOWS: tuple[type[InternalFlow], ...] = (
    SummarizeSession,
    DistilPreferences,
    TidyScratchpad,
    AbandonFlows,
    RepairState,
    ExpireSessions,
    PruneArchive,
    PruneRuntime,
    GatherContext,
    HandOverContext,
)
