from dataclasses import dataclass

from orchestrator.types import Epoch, JsonObject, SessionId, TenantId


@dataclass(frozen=True, slots=True)
class SessionState:
    tenant_id: TenantId
    session_id: SessionId
    epoch: Epoch
    state: JsonObject


@dataclass(frozen=True, slots=True)
class SessionRows:
    """Counts of a session's inconsistent rows.

    Args:
        turns: turns that are marked as running but have no worker.
        frames: frames whose flow is neither on the stack nor archived.
        plans: open plans that are not on the stack.
    """

    tenant_id: TenantId
    session_id: SessionId
    turns: int
    frames: int
    plans: int
