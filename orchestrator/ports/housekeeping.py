"""Records for maintenance flows."""

from dataclasses import dataclass

from orchestrator.types import Epoch, JsonObject, SessionId, TenantId


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session and its working state at one moment."""

    tenant_id: TenantId
    session_id: SessionId
    epoch: Epoch
    state: JsonObject


@dataclass(frozen=True, slots=True)
class SessionRows:
    """Counts of a session's inconsistent rows.

    Args:
        turns: running, but unclaimed.
        frames: of flows neither on the stack nor archived.
        plans: open, but not on the stack.
    """

    tenant_id: TenantId
    session_id: SessionId
    turns: int
    frames: int
    plans: int
