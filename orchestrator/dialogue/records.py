"""Small records of the dialogue state: flags, digression, approvals, effects, messages (ST-1).

Each knows its JSON form. What happens to them is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.dialogue.json_values import copy_json
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

    def serialize(self) -> JsonObject:
        return {
            "keep_going": self.keep_going,
            "has_issues": self.has_issues,
            "has_plan": self.has_plan,
            "natural_birth": self.natural_birth,
        }

    @classmethod
    def from_dict(cls, body: JsonObject) -> Flags:
        return cls(body["keep_going"], body["has_issues"], body["has_plan"], body["natural_birth"])


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

    def serialize(self) -> JsonObject:
        return {"depth": self.depth, "last": None if self.last is None else self.last.value}

    @classmethod
    def from_dict(cls, body: JsonObject) -> DigressionRecord:
        last = body["last"]
        return cls(body["depth"], None if last is None else Digression(last))


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

    def serialize(self) -> JsonObject:
        return {
            "approval_id": self.approval_id,
            "flow_id": self.flow_id,
            "tool_id": self.tool_id,
            "arguments": copy_json(self.arguments),
            "asked_at": self.asked_at,
            "expires_at": self.expires_at,
            "plan_revision": self.plan_revision,
            "policy_version": self.policy_version,
            "turn_id": self.turn_id,
            "question": self.question,
            "cause": self.cause,
            "asked_turn": self.asked_turn,
            **({"operator_only": True} if self.operator_only else {}),
        }

    @classmethod
    def from_dict(cls, body: JsonObject) -> PendingApproval:
        return cls(**{**body, "arguments": copy_json(body["arguments"])})


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

    def serialize(self) -> JsonObject:
        return {
            "tool_id": self.tool_id,
            "flow_id": self.flow_id,
            "slots": copy_json(self.slots),
            "arguments": copy_json(self.arguments),
            "summary": self.summary,
            "status": self.status.value,
            "compensation": self.compensation,
            "turn_id": self.turn_id,
            "result": copy_json(self.result),
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_dict(cls, body: JsonObject) -> EffectNote:
        return cls(
            body["tool_id"],
            body["flow_id"],
            copy_json(body["slots"]),
            copy_json(body["arguments"]),
            body["summary"],
            EffectStatus(body["status"]),
            body["compensation"],
            body["turn_id"],
            copy_json(body["result"]),
            body["fingerprint"],
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the conversation as the working state keeps it. `role`: user, agent or system."""

    role: str
    text: str
    turn: int = 0

    def serialize(self) -> JsonObject:
        return {"role": self.role, "text": self.text, "turn": self.turn}

    @classmethod
    def from_dict(cls, body: JsonObject) -> Message:
        return cls(body["role"], body["text"], body["turn"])
