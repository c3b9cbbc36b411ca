"""The flows that come with the system."""

from __future__ import annotations

from internal_flows.housekeeping.distil_preferences import DistilPreferences
from internal_flows.housekeeping.documents import EmbedDocuments, PromoteContext
from internal_flows.housekeeping.forgetting import EraseForgotten, Forget
from internal_flows.housekeeping.gather_context import GatherContext, HandOverContext
from internal_flows.housekeeping.retention import ExpireSessions, PruneArchive, PruneRuntime
from internal_flows.housekeeping.states import AbandonFlows, RepairState
from internal_flows.housekeeping.summarize_session import SummarizeIdle, SummarizeSession
from internal_flows.housekeeping.tidy_scratchpad import TidyScratchpad
from internal_flows.stages import InternalFlow

FLOWS: tuple[type[InternalFlow], ...] = (
    SummarizeSession,
    SummarizeIdle,
    DistilPreferences,
    PromoteContext,
    TidyScratchpad,
    EmbedDocuments,
    AbandonFlows,
    RepairState,
    ExpireSessions,
    PruneArchive,
    PruneRuntime,
    Forget,
    EraseForgotten,
    GatherContext,
    HandOverContext,
)
