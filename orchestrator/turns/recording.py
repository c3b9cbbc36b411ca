"""Recorded turns, with all data that a replay needs to repeat their decisions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.turns.approval import ApprovalRecord
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.step import Step
from orchestrator.turns.turn import TurnInput
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A recorded turn.

    Args:
        epoch: the epoch that the turn created.
        state: the state before the turn, or None in a new session.
        began: the start of the last attempt, in Unix seconds.
        waited_s: seconds between acceptance and `began`.
    """

    turn_id: TurnId
    seq: int
    epoch: Epoch
    input: TurnInput
    state: bytes | None
    began: float
    ended: datetime
    result: JsonObject
    signals: list[JsonObject]
    steps: tuple[Step, ...]
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A recorded run that gathered context for a turn. `found`: its findings, or None if the run did not succeed."""

    turn_id: str
    ended: datetime | None
    found: list[JsonObject] | None


@dataclass(slots=True)
class RecordedSession:
    """A session's replayable turns, in order.

    Args:
        root: the root of the fork tree, or None if the session isn't a fork.
        left_out: the number of turns that can't be replayed, by reason.
    """

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    domain: str
    root: SessionId | None = None
    turns: list[RecordedTurn] = field(default_factory=list[RecordedTurn])
    ledger: list[LedgerEntry] = field(default_factory=list[LedgerEntry])
    approvals: dict[str, ApprovalRecord] = field(default_factory=dict[str, ApprovalRecord])
    runs: Mapping[str, RecordedRun] = field(default_factory=dict[str, RecordedRun])
    left_out: Counter[str] = field(default_factory=Counter[str])
