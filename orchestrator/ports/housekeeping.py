"""Records that the flows of housekeeping get of the store."""

from dataclasses import dataclass

from orchestrator.types import Epoch, JsonObject, SessionId, TenantId


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session and its working state, read at one moment."""

    tenant_id: TenantId
    session_id: SessionId
    epoch: Epoch
    state: JsonObject


@dataclass(frozen=True, slots=True)
class SessionRows:
    """How many rows of a session are not as they have to be.

    Args:
        turns: run, and nobody will take them up.
        frames: of flows that are neither on the stack nor archived.
        plans: open, and not on the stack.
    """

    tenant_id: TenantId
    session_id: SessionId
    turns: int
    frames: int
    plans: int
