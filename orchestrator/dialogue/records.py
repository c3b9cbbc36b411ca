"""Small records of the dialogue state: flags, digression, approvals, effects, messages (ST-1).

What happens to them is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.dialogue.understanding import Digression
from orchestrator.types import FlowId, JsonObject, ToolId, TurnId


@dataclass(slots=True)
class Flags:
    """What the Agent's loop goes by.

    `keep_going`: carry out the next flow without waiting for the user. `has_issues`: a check failed.
    `has_plan`: a plan is in progress. `natural_birth`: the top flow came from the user's own words,
    not from a plan or a fallback.
    """

    keep_going: bool = False
    has_issues: bool = False
    has_plan: bool = False
    natural_birth: bool = True


@dataclass(slots=True)
class DigressionRecord:
    """How many digressions followed each other, and of which kind the last one was (IR-3)."""

    depth: int = 0
    last: Digression | None = None

    def record(self, kind: Digression) -> None:
        """One more digression."""
        self.depth += 1
        self.last = kind

    def end(self) -> None:
        """The user is back on the task; the last kind stays on record."""
        self.depth = 0


@dataclass(slots=True)
class PendingApproval:
    """A question for approval of one call; bound to all that is named here (PX-17).

    Times are unix seconds. Without a decision before `expires_at` the answer is no.
    """

    approval_id: str
    flow_id: FlowId
    tool_id: ToolId
    arguments: JsonObject
    asked_at: float
    expires_at: float
    plan_revision: int = 0
    policy_version: str = ""
    turn_id: TurnId | None = None
    question: str = ""
    cause: str = ""
    """Why it is asked, in words for the user; empty when the tool's manifest says so."""
    asked_turn: int = 0
    """Number of the turn that put it to the user last: only right after it a bare yes means it."""
    operator_only: bool = False
    """Whether the user cannot grant it himself."""

    def has_expired(self, now: float) -> bool:
        return now >= self.expires_at


class EffectStatus(StrEnum):
    """What is known about a call that changes the outside world."""

    FINISHED = "finished"
    UNKNOWN = "unknown"
    """It was begun, and whether it happened cannot be told (RT-9)."""
    COMPENSATED = "compensated"
    """It was undone by the tool's compensation."""


@dataclass(slots=True)
class EffectNote:
    """A non-idempotent tool call and the slot values that it was made from (RT-12)."""

    tool_id: ToolId
    flow_id: FlowId
    slots: JsonObject
    """Slot name → value at the time of the call."""
    arguments: JsonObject
    summary: str = ""
    """What was done, in words for the user."""
    status: EffectStatus = EffectStatus.FINISHED
    compensation: ToolId | None = None
    turn_id: TurnId | None = None
    result: JsonObject = field(default_factory=JsonObject)
    """The part of the result that a compensation needs; small."""
    fingerprint: str = ""
    """Its place in the session's ledger."""

    @property
    def is_done(self) -> bool:
        """Whether it was done for certain, and not undone."""
        return self.status is EffectStatus.FINISHED

    @property
    def stands(self) -> bool:
        """Whether the outside world may still be as the call left it."""
        return self.status is not EffectStatus.COMPENSATED


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the conversation as the working state keeps it. `role`: user, agent or system."""

    role: str
    text: str
    turn: int = 0
