"""More context for a flow that cannot go on: asked for by a turn, looked up by an Internal flow (PX-16).

`ContextGathering` is the turn's side.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from orchestrator.types import FlowId, Json, JsonObject, SessionId, TenantId, TurnId, UserId

GATHER_CONTEXT: Final = "gather_context"
"""The Internal flow that looks."""
HAND_OVER_CONTEXT: Final = "hand_over_context"
"""The one that brings the session's lane what was found, when a flow still waits for it."""
CONTEXT_READY: Final = "context_ready"
"""The action of the system turn that it brings."""


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """A question of a flow that cannot go on.

    Args:
        question: what is open, in words.
        slots: descriptions of the slots whose values would help, by name.
        known: values that the flow has.
    """

    tenant_id: TenantId
    session_id: SessionId
    user_id: UserId | None
    turn_id: TurnId
    flow_id: FlowId
    domain: str
    dact: str
    question: str
    slots: dict[str, str] = field(default_factory=dict[str, str])
    known: JsonObject = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was found.

    Args:
        source: where: ``scratchpad``, ``tasks``, ``turns``, ``rows`` or ``memory``.
        text: it in words, for a skill.
        values: values for slots of the question.
        score: how well it fits; higher is better.
        labels: capability labels of what it was made from.
    """

    source: str
    text: str
    values: JsonObject = field(default_factory=dict[str, Json])
    score: float = 0.0
    labels: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Its JSON form."""
        return {**asdict(self), "labels": list(self.labels)}

    @classmethod
    def from_json(cls, body: JsonObject) -> Finding:
        """The inverse of `to_json`."""
        return cls(body["source"], body["text"], body["values"], body["score"], tuple(body["labels"]))


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was found, the best first; empty when nothing was, or when looking failed."""

    found: tuple[Finding, ...] = ()

    def values(self) -> JsonObject:
        """For each slot the value of the best finding that has one."""
        values: JsonObject = {}
        for finding in self.found:
            for name, value in finding.values.items():
                values.setdefault(name, value)
        return values


class ContextGathering(Protocol):
    """How a turn has Internal flows look for something. Every method raises Unavailable."""

    async def begin(self, question: ContextQuestion) -> str:
        """Start looking; the run that does. The same flow of the same turn asks once."""
        ...

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> Findings | None:
        """Wait for what was found; None when looking has not ended within so many seconds."""
        ...
