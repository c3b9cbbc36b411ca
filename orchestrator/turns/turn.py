"""A turn: one input to a session and its way through the inbox. Records and their states only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.errors import IllegalTransition
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId


class TurnStatus(StrEnum):
    QUEUED = "queued"
    """Accepted; waits for its predecessors."""
    RUNNING = "running"
    """Taken up by the holder of the session's lane."""
    DONE = "done"
    """Answered and committed."""
    FAILED = "failed"
    """Ended without an answer of the assistant: past its deadline, or gapped away."""
    CANCELLED = "cancelled"
    """Ended by the user or an operator before it was committed."""
    REJECTED = "rejected"
    """Refused before it ran."""
    QUARANTINED = "quarantined"
    """Failed repeatedly; the lane went on, an operator may retry or drop it."""


TURN_TRANSITIONS: dict[TurnStatus, frozenset[TurnStatus]] = {
    # A turn that was merged into another ends as that one does; one that was handed back too often is
    # quarantined when it is to be taken up again.
    TurnStatus.QUEUED: frozenset(
        {
            TurnStatus.RUNNING,
            TurnStatus.DONE,
            TurnStatus.CANCELLED,
            TurnStatus.REJECTED,
            TurnStatus.FAILED,
            TurnStatus.QUARANTINED,
        }
    ),
    TurnStatus.RUNNING: frozenset(
        {
            TurnStatus.QUEUED,
            TurnStatus.DONE,
            TurnStatus.FAILED,
            TurnStatus.CANCELLED,
            TurnStatus.QUARANTINED,
        }
    ),
    TurnStatus.QUARANTINED: frozenset({TurnStatus.QUEUED, TurnStatus.CANCELLED}),
    TurnStatus.DONE: frozenset(),
    TurnStatus.FAILED: frozenset(),
    TurnStatus.CANCELLED: frozenset(),
    TurnStatus.REJECTED: frozenset(),
}

FINISHED = frozenset(
    {
        TurnStatus.DONE,
        TurnStatus.FAILED,
        TurnStatus.CANCELLED,
        TurnStatus.REJECTED,
        TurnStatus.QUARANTINED,
    }
)
"""A waiting caller gets its answer in these; only an operator moves a turn out of quarantine."""


def require_transition(present: TurnStatus, wanted: TurnStatus) -> None:
    """Raises IllegalTransition when a turn cannot go from one status to the other."""
    if wanted not in TURN_TRANSITIONS[present]:
        raise IllegalTransition(f"A turn that is {present} cannot become {wanted}.")


class IfBusy(StrEnum):
    """What to do with a new turn while the session has an unfinished one (RT-5)."""

    ENQUEUE = "enqueue"
    REJECT = "reject"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"
    MERGE = "merge"


class TurnKind(StrEnum):
    USER = "user"
    """Text or an action of the user."""
    SYSTEM = "system"
    """A message of the system itself, for example a proposal of an Internal flow."""


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What a turn brings: text or one action, never both.

    `form` is how it was made: ``text``, ``speech``, ``image`` or ``action``.
    `action` is ``{"name": str, "payload": object}``.
    """

    text: str | None = None
    action: JsonObject | None = None
    form: str = "text"
    kind: TurnKind = TurnKind.USER


@dataclass(frozen=True, slots=True)
class Submission:
    """A request to accept one turn (RT-5).

    `sequence` is the client's own number within the session, from 1; the lane waits for a missing
    predecessor. `domain` and `user_id` count only when the session does not exist and
    `create_session` is set.
    """

    session_id: SessionId
    input: TurnInput
    tenant_id: TenantId
    idempotency_key: str | None = None
    sequence: int | None = None
    if_busy: IfBusy | None = None
    create_session: bool = False
    domain: str | None = None
    user_id: UserId | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a caller gets for an accepted turn. `position`: turns of the session before it."""

    turn_id: TurnId
    session_id: SessionId
    seq: int
    status: TurnStatus
    position: int
    repeated: bool = False
    """True when an idempotency key matched an earlier turn."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn as it is stored. `result` is the turn object of the interfaces once it has finished."""

    turn_id: TurnId
    session_id: SessionId
    tenant_id: TenantId
    seq: int
    status: TurnStatus
    input: TurnInput
    attempts: int = 0
    epoch: Epoch | None = None
    result: JsonObject | None = None
    error: str | None = None
    accepted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session's fixed facts and its present standing."""

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    domain: str
    epoch: Epoch
    closed: bool
    pending: int
    created_at: datetime
    updated_at: datetime
    if_busy: IfBusy = IfBusy.ENQUEUE
    state: JsonObject | None = field(default=None)
