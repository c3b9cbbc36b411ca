"""Finished turns as they are kept, with all that they were decided from: what a replay is given. Records only."""

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
    """`state`: the one before the turn, None in a new session. `began`: unix seconds. `epoch`: the one it made."""

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
    """How long before `began` it was accepted."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that looked for context: the turn that asked for it, and what it `found`; None: it failed."""

    turn_id: str
    ended: datetime | None
    found: list[JsonObject] | None


@dataclass(slots=True)
class RecordedSession:
    """A session's turns that can be replayed, in order. `left_out`: how many cannot, by why. `root`: see `Lease`."""

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
