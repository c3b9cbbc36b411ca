"""How an attempt at a turn ends: a closed set, and what is written for a turn that was stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.errors import DeadlineExceeded, TurnCancelled
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Utterance
from orchestrator.turns.result import SAFE_REPLIES
from orchestrator.turns.turn import TurnStatus

FRESH_STATE = b"{}"
"""The state of a session whose first turn changed nothing."""

NO_CHANGE = b"{}"


@dataclass(frozen=True, slots=True)
class Answered:
    """The agent decided; `commit` waits to be written."""

    commit: TurnCommit


@dataclass(frozen=True, slots=True)
class Stopped:
    """Cancelled or out of time: the turn ends, the state stays."""

    error: TurnCancelled | DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Failed:
    """A surprise: the attempt counts, the turn is tried again."""

    error: str


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The process is ending: another one takes the turn up, the attempt does not count."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The lane is no longer ours: the work is discarded."""


Ending: TypeAlias = Answered | Stopped | Failed | HandedBack | Lost


def stopped_commit(lease: Lease, error: TurnCancelled | DeadlineExceeded) -> TurnCommit:
    """End a turn with a safe message and leave the session's state as it was."""
    work = lease.work
    status = TurnStatus.CANCELLED if isinstance(error, TurnCancelled) else TurnStatus.FAILED
    message = SAFE_REPLIES[status]
    payload = {"code": error.code, "message": message}
    said = (Utterance("user", work.input.form, work.input.text),) if work.input.text else ()
    return TurnCommit(
        status=status,
        state=lease.state or FRESH_STATE,
        diff=NO_CHANGE,
        snapshot=False,
        result={"reply": message},
        error=f"{error.code}: {error}",
        utterances=(*said, Utterance("agent", "text", message)),
        events=(Event(lease.session_id, "failed", work.turn_id, payload),),
    )
