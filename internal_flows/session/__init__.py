"""Background flows that process one session's content and scratchpad (IF-17)."""

from internal_flows.session.distil_preferences import DistilPreferences
from internal_flows.session.gather_context import GatherContext
from internal_flows.session.promote_context import PromoteContext
from internal_flows.session.summarize_session import SummarizeSession
from internal_flows.session.tidy_scratchpad import TidyScratchpad
from internal_flows.stages import InternalFlow

FLOWS: tuple[type[InternalFlow], ...] = (
    SummarizeSession,
    DistilPreferences,
    PromoteContext,
    TidyScratchpad,
    GatherContext,
)
