"""The possible endings of an attempt at a turn, and the commit of a stopped turn."""

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
    """An attempt with changes to commit. The turn may have been stopped."""

    commit: TurnCommit


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that failed unexpectedly. It counts, and the turn is retried until it is quarantined."""

    error: str


@dataclass(frozen=True, slots=True)
class HandedBack:
    """An attempt that was interrupted by shutdown and doesn't count. Another process claims the turn."""


@dataclass(frozen=True, slots=True)
class Lost:
    """An attempt whose session lane another worker has taken over. The results are discarded."""


Ending: TypeAlias = Answered | Failed | HandedBack | Lost


StopCause: TypeAlias = TurnCancelled | DeadlineExceeded | GaveUp
"""Errors that end a turn before it is answered."""


def status_of(cause: StopCause) -> TurnStatus:
    match cause:
        case TurnCancelled():
            return TurnStatus.CANCELLED
        case DeadlineExceeded():
            return TurnStatus.FAILED
        case GaveUp():
            return TurnStatus.QUARANTINED


def commit_without_effects(lease: Lease, cause: StopCause, word: WordFor) -> TurnCommit:
    """Return the commit for a stopped turn that changed nothing. The reply depends only on the new status."""
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
    """Return the commit with its turn marked as stopped, even if the reply reports side effects (RT-25)."""
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
