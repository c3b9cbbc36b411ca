"""A turn: one input to a session and its way through the inbox; its records, their states, and the turn object.

The turn object is what people and programs see: one shape on the command line, over HTTP and in the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.errors import IllegalTransition, InboxFull, Refused, SessionBusy, SessionClosed
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
    UNDERSTAND = "understand"
    """Read against what the unfinished turn does; that one stops, goes on, or is answered beside."""


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
    predecessor. `domain`, `user_id` and `session_if_busy` (the rule of turns that name none) count only when
    the session does not exist and `create_session` is set.
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
    session_if_busy: IfBusy = IfBusy.ENQUEUE


def session_in_use(session_id: SessionId) -> Refused:
    """The complaint about an identifier that another tenant or domain has."""
    return Refused(f"The session identifier {session_id!r} is in use elsewhere; choose another.")


def sequence_in_use(submission: Submission) -> Refused:
    return Refused(f"The sequence {submission.sequence} was used already by another turn of this session.")


def require_room(rule: IfBusy, *, closed: bool, busy: bool, pending: int, limit: int) -> None:
    """Raises what keeps a session from taking another turn: SessionClosed, SessionBusy, InboxFull."""
    if closed:
        raise SessionClosed("The session has been closed; start a new one.")
    if busy and rule is IfBusy.REJECT:
        raise SessionBusy("The session is still working on an earlier turn; wait for its answer.")
    if pending >= limit:
        raise InboxFull(f"The session has {pending} unfinished turns; wait for some to finish.")


def require_total_room(waiting: int, limit: int) -> None:
    """Raises InboxFull when the bound of all sessions together is reached."""
    if waiting >= limit:
        raise InboxFull("Too many turns are waiting in all; try again later.", retry_after_s=5)


def require_own(turn: TurnRecord) -> None:
    """Raises Refused for a turn that was merged into another and ends with it."""
    if turn.merged_into is not None and turn.status not in FINISHED:
        raise Refused(f"The turn was merged into {turn.merged_into}; cancel that one.")


def require_retriable(turn: TurnRecord) -> None:
    """Raises Refused unless an operator may have the turn tried again."""
    if turn.status is not TurnStatus.QUARANTINED:
        raise Refused(f"Only a quarantined turn can be retried; this one is {turn.status}.")


def require_droppable(turn: TurnRecord) -> None:
    """Raises Refused unless an operator may give the turn up."""
    if turn.status not in {TurnStatus.QUEUED, TurnStatus.QUARANTINED}:
        raise Refused(f"Only a queued or quarantined turn can be dropped; this one is {turn.status}.")
    require_own(turn)


def find_mergeable(waiting: Sequence[TurnRecord], submission: Submission) -> TurnRecord | None:
    """The last waiting turn, when it and the new one are plain texts of the user (`merge`)."""
    last = waiting[-1] if waiting else None
    mergeable = (
        last is not None
        and last.status is TurnStatus.QUEUED
        and last.attempts == 0
        and last.input.text is not None
        and last.input.kind is TurnKind.USER
        and not last.cancel_requested
        and submission.input.text is not None
        and submission.input.kind is TurnKind.USER
    )
    return last if mergeable else None


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
    merged_into: TurnId | None = None
    cancel_requested: bool = False
    accepted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


LONGEST_TITLE = 80
"""Characters of a session's title."""


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
    title: str | None = None
    """The beginning of what was said first; None where a session was not read with it."""
    parent: SessionId | None = None
    parent_epoch: Epoch | None = None
    """Of a branch: the session and the epoch that it goes on from."""
    root: SessionId | None = None
    """Of a branch: where its family begins."""


def require_branch(found: SessionRecord, parent: SessionId, epoch: Epoch | None) -> None:
    """Raises Refused unless the session was branched off this one, at this epoch where one is named."""
    if found.parent != parent or epoch not in {None, found.parent_epoch}:
        raise session_in_use(found.session_id)


SAFE_REPLIES: dict[TurnStatus, str] = {
    TurnStatus.QUARANTINED: "Sorry, something went wrong with that request. You can carry on or try it again.",
    TurnStatus.CANCELLED: "That request was cancelled.",
    TurnStatus.FAILED: "Sorry, that request could not be handled. Please send it again.",
    TurnStatus.REJECTED: "That request was not accepted.",
}
"""What the user reads; never the error itself."""

ACTED_REPLY = (
    "Sorry, something went wrong with that request, and a part of it may have been done. "
    "Please check that before you ask for it again."
)
"""The same where tools were called that change something."""


def unanswered(
    session_id: SessionId,
    turn_id: TurnId,
    seq: int,
    epoch: Epoch,
    status: TurnStatus,
    text: str | None,
    *,
    acted: bool = False,
) -> JsonObject:
    """The result of a turn that was cancelled, gapped away or quarantined: complete, with a safe reply.

    `acted`: tools were called that change something.
    """
    return {
        "session_id": session_id,
        "turn_id": turn_id,
        "seq": seq,
        "epoch": epoch,
        "status": status.value,
        "text": text,
        "reply": ACTED_REPLY if acted else SAFE_REPLIES[status],
        **_nothing_yet(),
        "duration_ms": 0,
    }


def turn_object(record: TurnRecord) -> JsonObject:
    """The turn in the form of the interfaces; parts that are not known yet are empty.

    Keys: session_id, turn_id, seq, epoch, status, text, reply, flows, completed, tools, frames (`frame` is the
    last of them), actions, interaction, code_snippet, properties, ambiguity, flags, duration_ms, and error when there
    is one.
    """
    body: JsonObject = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "seq": record.seq,
        "epoch": record.epoch,
        "status": record.status.value,
        "text": record.input.text,
        "reply": None,
        **_nothing_yet(),
        "duration_ms": None,
    }
    if record.result is not None:
        body.update(record.result)
    body["status"] = record.status.value
    body["frames"] = [*body.pop("earlier_frames", ()), *([body["frame"]] if body["frame"] else [])]
    if record.error is not None:
        body["error"] = record.error
    return body


def _nothing_yet() -> JsonObject:
    """The parts of a turn object that only an answer fills."""
    return {
        "flows": [],
        "completed": [],
        "tools": [],
        "frames": [],
        "frame": None,
        "actions": [],
        "interaction": {"kind": "none"},
        "code_snippet": None,
        "properties": {},
        "ambiguity": None,
        "flags": {},
    }
