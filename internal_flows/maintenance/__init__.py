"""Background flows that maintain the stores, across all sessions and tenants (IF-17)."""

from internal_flows.maintenance.embed_documents import EmbedDocuments
from internal_flows.maintenance.follow_ups import HandOverContext, SummarizeIdle
from internal_flows.maintenance.forgetting import EraseForgotten, Forget
from internal_flows.maintenance.retention import ExpireSessions, PruneArchive, PruneRuntime
from internal_flows.maintenance.states import AbandonFlows, RepairState
from internal_flows.stages import InternalFlow

FLOWS: tuple[type[InternalFlow], ...] = (
    SummarizeIdle,
    EmbedDocuments,
    AbandonFlows,
    RepairState,
    ExpireSessions,
    PruneArchive,
    PruneRuntime,
    Forget,
    EraseForgotten,
    HandOverContext,
)
