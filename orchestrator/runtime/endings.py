"""Endings of an attempt at a turn, as a closed set, and the commit of a stopped turn."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from orchestrator.errors import DeadlineExceeded, GaveUp, TurnCancelled
from orchestrator.saying import WordFor
from orchestrator.turns.event import ENDINGS, Event
from orchestrator.turns.lease import AGENT, Lease, TurnCommit, Utterance
from orchestrator.turns.turn import SAFE_REPLIES, TurnStatus

FRESH_STATE = b"{}"
"""The state of a session whose first turn changed nothing."""

NO_CHANGE = b"{}"


@dataclass(frozen=True, slots=True)
class Answered:
    """The attempt decided what the turn changes, possibly after a stop; `commit` is ready to be written."""

    commit: TurnCommit


@dataclass(frozen=True, slots=True)
class Failed:
    """An unexpected error: the attempt counts and the turn is retried."""

    error: str


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The process is shutting down: another one claims the turn, and this attempt doesn't count."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The lane was lost: discard the work."""


Ending: TypeAlias = Answered | Failed | HandedBack | Lost


StopCause: TypeAlias = TurnCancelled | DeadlineExceeded | GaveUp
"""Reasons to end a turn before it is answered."""


def status_of(cause: StopCause) -> TurnStatus:
    match cause:
        case TurnCancelled():
            return TurnStatus.CANCELLED
        case DeadlineExceeded():
            return TurnStatus.FAILED
        case GaveUp():
            return TurnStatus.QUARANTINED


def commit_without_effects(lease: Lease, cause: StopCause, word: WordFor) -> TurnCommit:
    """End a turn that changed nothing: a safe message and the unchanged state."""
    work, status = lease.work, status_of(cause)
    reply = word(lease.domain, SAFE_REPLIES[status])
    said = (Utterance("user", work.input.form, work.input.text),) if work.input.text else ()
    commit = TurnCommit(
        status=status,
        state=lease.present_state or FRESH_STATE,
        diff=NO_CHANGE,
        snapshot=False,
        result={"reply": reply},
        utterances=(*said, Utterance(AGENT, "text", reply)),
    )
    return as_stopped(lease, commit, cause)


def as_stopped(lease: Lease, commit: TurnCommit, cause: StopCause) -> TurnCommit:
    """Mark a commit's turn as stopped, even if its reply reports side effects (RT-25)."""
    status = status_of(cause)
    payload = {"code": cause.code, "message": commit.result["reply"]}
    events = tuple(event for event in commit.events if event.type not in ENDINGS)
    return replace(
        commit,
        status=status,
        error=f"{cause.code}: {cause}",
        result={**commit.result, "status": status.value},
        events=(*events, Event(lease.session_id, "failed", lease.work.turn_id, payload)),
    )
