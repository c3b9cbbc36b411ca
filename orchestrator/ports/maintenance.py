"""Session records for maintenance flows."""

from dataclasses import dataclass

from orchestrator.types import Epoch, JsonObject, SessionId, TenantId


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session's working state at one epoch."""

    tenant_id: TenantId
    session_id: SessionId
    epoch: Epoch
    state: JsonObject


@dataclass(frozen=True, slots=True)
class SessionRows:
    """The numbers of inconsistent rows in a session.

    Args:
        turns: turns marked as running without a worker.
        frames: frames whose flow is neither on the stack nor archived.
        plans: open plans that are not on the stack.
    """

    tenant_id: TenantId
    session_id: SessionId
    turns: int
    frames: int
    plans: int
