"""Turns: inputs, records and statuses, and the turn object that all APIs return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.errors import IllegalTransition, InboxFull, Refused, SessionBusy, SessionClosed
from orchestrator.saying import Saying, say
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId, is_object


class TurnStatus(StrEnum):
    QUEUED = "queued"
    """Accepted. Waits for earlier turns."""
    RUNNING = "running"
    """Claimed by the worker that holds the session lane."""
    DONE = "done"
    """Answered and committed."""
    FAILED = "failed"
    """Ended because of its deadline or a gap in the sequence."""
    CANCELLED = "cancelled"
    """Canceled before the commit, for example by the user, an operator or a later message."""
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    """Failed repeatedly. Later turns continue, and an operator can retry or drop this turn."""


FINISHED = frozenset(TurnStatus) - {TurnStatus.QUEUED, TurnStatus.RUNNING}
"""Statuses with a response for waiting callers. Only an operator can move a turn out of quarantine."""

TURN_TRANSITIONS: dict[TurnStatus, frozenset[TurnStatus]] = {
    **dict.fromkeys(FINISHED, frozenset()),
    # A queued turn that has no attempts left is quarantined when a worker tries to claim it.
    TurnStatus.QUEUED: FINISHED | {TurnStatus.RUNNING},
    TurnStatus.RUNNING: FINISHED - {TurnStatus.REJECTED} | {TurnStatus.QUEUED},
    TurnStatus.QUARANTINED: frozenset({TurnStatus.QUEUED, TurnStatus.CANCELLED}),
}


def require_transition(present: TurnStatus, wanted: TurnStatus) -> None:
    if wanted not in TURN_TRANSITIONS[present]:
        raise IllegalTransition(f"A turn cannot change from {present} to {wanted}.")


class IfBusy(StrEnum):
    """Policies for a new turn while an earlier turn of the session is unfinished (RT-5)."""

    ENQUEUE = "enqueue"
    REJECT = "reject"
    INTERRUPT = "interrupt"
    """Stop the unfinished turn, then run the new turn."""
    ROLLBACK = "rollback"
    """Stop the unfinished turn, discard its changes unless it had side effects, then run the new turn."""
    UNDERSTAND = "understand"
    """Interpret the message in the context of the unfinished turn.

    A correction or cancellation stops that turn; other messages wait.
    """


class TurnKind(StrEnum):
    USER = "user"
    """The user's text or action."""
    SYSTEM = "system"
    """Input that is not from the user, for example an event, an approval or a repair."""


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A turn's input: either text or an action.

    Args:
        action: ``{"name": str, "payload": object}``.
        form: ``text``, ``speech``, ``image`` or ``action``.
        timezone, locale: in a submission, values to store with the session. In an accepted turn, the
            session's values at that time, or None for the domain's defaults.
    """

    text: str | None = None
    action: JsonObject | None = None
    form: str = "text"
    kind: TurnKind = TurnKind.USER
    timezone: str | None = None
    locale: str | None = None

    @property
    def payload(self) -> JsonObject:
        """Return the action's payload, or an empty object."""
        payload = (self.action or {}).get("payload")
        return payload if is_object(payload) else {}


@dataclass(frozen=True, slots=True)
class Submission:
    """A turn to accept (RT-5).

    Args:
        sequence: the client's number for the turn within the session, from 1. The lane waits for missing
            predecessors.
        if_busy: the policy for this turn. Default: the session's policy.
        create_session: True to create a missing session, with `domain`, `user_id` and `session_if_busy`.
        session_if_busy: the default policy of a new session.
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
    session_if_busy: IfBusy = IfBusy.UNDERSTAND


def session_in_use(session_id: SessionId) -> Refused:
    return Refused(f"The session ID {session_id!r} is already in use; choose another.")


def sequence_in_use(submission: Submission) -> Refused:
    return Refused(f"Sequence {submission.sequence} was already used by another turn in this session.")


def require_open(*, closed: bool) -> None:
    if closed:
        raise SessionClosed("The session has been closed; start a new one.")


def require_room(rule: IfBusy, *, closed: bool, busy: bool, pending: int, limit: int) -> None:
    """Raise SessionClosed, SessionBusy or InboxFull if a session can't accept a turn."""
    require_open(closed=closed)
    if busy and rule is IfBusy.REJECT:
        raise SessionBusy("The session is still running an earlier turn; wait for its reply.")
    if pending >= limit:
        raise inbox_full(pending)


def inbox_full(pending: int) -> InboxFull:
    return InboxFull(f"The session has {pending} unfinished turns; wait for some to finish.")


def require_total_room(waiting: int, limit: int) -> None:
    """Raise InboxFull if too many turns are waiting across all sessions."""
    if waiting >= limit:
        raise InboxFull("Too many turns are waiting; try again later.", retry_after_s=5)


def require_retriable(turn: TurnRecord) -> None:
    if turn.status is not TurnStatus.QUARANTINED:
        raise Refused(f"Only a quarantined turn can be retried; turn {turn.turn_id!r} is {turn.status}.")


def require_droppable(turn: TurnRecord) -> None:
    if turn.status not in {TurnStatus.QUEUED, TurnStatus.QUARANTINED}:
        raise Refused(
            f"Only a queued or quarantined turn can be dropped; turn {turn.turn_id!r} is {turn.status}."
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """The response to an accepted turn.

    `position`: the number of the session's earlier unfinished turns. `repeated`: True if the turn had already
    been accepted with the same idempotency key.
    """

    turn_id: TurnId
    session_id: SessionId
    seq: int
    status: TurnStatus
    position: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A stored turn. `result`: the parts of the turn object that a finished turn has set."""

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
    cancel_requested: bool = False
    accepted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


LONGEST_TITLE = 80
"""Maximum length of a session title, in characters."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session with its current status.

    Args:
        pending: the number of unfinished turns.
        title: the beginning of the first message, or None if there is no message or the title was not read.
        parent: the session that this session was forked from.
        parent_epoch: the parent's epoch at the fork.
        root: the root of the fork tree, or None if the session isn't a fork.
        timezone, locale: the user's settings, or None for the domain's defaults.
    """

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    domain: str
    epoch: Epoch
    closed: bool
    pending: int
    created_at: datetime
    updated_at: datetime
    if_busy: IfBusy = IfBusy.UNDERSTAND
    state: JsonObject | None = field(default=None)
    title: str | None = None
    parent: SessionId | None = None
    parent_epoch: Epoch | None = None
    root: SessionId | None = None
    timezone: str | None = None
    locale: str | None = None


def require_branch(found: SessionRecord, parent: SessionId, epoch: Epoch | None) -> None:
    """Raise Refused unless the session was forked from `parent`, and at `epoch` if given."""
    if found.parent != parent or epoch not in {None, found.parent_epoch}:
        raise session_in_use(found.session_id)


SAFE_REPLIES: Mapping[TurnStatus, Saying] = {
    TurnStatus.QUARANTINED: say("turn_quarantined"),
    TurnStatus.CANCELLED: say("turn_canceled"),
    TurnStatus.FAILED: say("turn_failed"),
    TurnStatus.REJECTED: say("turn_rejected"),
}
"""Replies to turns without an answer, by status."""

ACTED_REPLY = say("turn_acted")
"""The reply to turns without an answer that called tools with side effects."""


def unanswered(
    epoch: Epoch, status: TurnStatus, word: Callable[[Saying], str], *, acted: bool = False
) -> JsonObject:
    """Return the result of a canceled, failed, rejected or quarantined turn, with a standard reply.

    `acted`: True to reply that tools with side effects were called. `word`: renders the reply in the user's language.
    """
    return {
        "epoch": epoch,
        "status": status.value,
        "reply": word(ACTED_REPLY if acted else SAFE_REPLIES[status]),
        "duration_ms": 0,
    }


def turn_object(record: TurnRecord) -> JsonObject:
    """Return the turn object. Unknown parts are empty.

    Keys: session_id, turn_id, seq, epoch, status, text, reply, flows, completed, tools, frames (`frame` is
    the last one), actions, interaction, code_snippet, properties, ambiguity, flags, duration_ms, and error if
    the turn has one.
    """
    body: JsonObject = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "seq": record.seq,
        "epoch": record.epoch,
        "status": record.status.value,
        "text": record.input.text,
        "reply": None,
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
        "duration_ms": None,
    }
    if record.result is not None:
        body.update(record.result)
    body["status"] = record.status.value
    body["frames"] = [*body.pop("earlier_frames", ()), *([body["frame"]] if body["frame"] else [])]
    if record.error is not None:
        body["error"] = record.error
    return body
