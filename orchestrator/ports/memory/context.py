"""Context for a blocked flow: requested by a turn, gathered by a background flow (PX-16).

`ContextGathering` is the turn's side.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from orchestrator.types import FlowId, Json, JsonObject, SessionId, TenantId, TurnId, UserId

GATHER_CONTEXT: Final = "gather_context"
"""The background flow that gathers context."""
HAND_OVER_CONTEXT: Final = "hand_over_context"
"""The flow that delivers findings to the session's lane if a flow still waits for them."""
CONTEXT_READY: Final = "context_ready"
"""The action of its system turn."""


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """A blocked flow's question.

    Args:
        question: the open question, in words.
        slots: descriptions of helpful slots, by name.
        known: the flow's values.
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
    """A finding.

    Args:
        source: ``scratchpad``, ``tasks``, ``turns``, ``rows`` or ``memory``.
        text: in words, for a skill.
        values: values of the question's slots.
        score: relevance; higher is better.
        labels: capability labels of its sources.
    """

    source: str
    text: str
    values: JsonObject = field(default_factory=dict[str, Json])
    score: float = 0.0
    labels: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        return {**asdict(self), "labels": list(self.labels)}

    @classmethod
    def from_json(cls, body: JsonObject) -> Finding:
        """Return the object that `to_json` wrote."""
        return cls(body["source"], body["text"], body["values"], body["score"], tuple(body["labels"]))


@dataclass(frozen=True, slots=True)
class Findings:
    """All findings, best first; empty if there are none or the search failed."""

    found: tuple[Finding, ...] = ()

    def values(self) -> JsonObject:
        """Return, for each slot, the value of the best finding that has one."""
        values: JsonObject = {}
        for finding in self.found:
            for name, value in finding.values.items():
                values.setdefault(name, value)
        return values


class ContextGathering(Protocol):
    """Gathers context for a turn through background flows. Every method raises Unavailable."""

    async def begin(self, question: ContextQuestion) -> str:
        """Start gathering; return the run. The same flow of the same turn starts one run."""
        ...

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> Findings | None:
        """Return the findings, or None if the run has not ended within `timeout_s`."""
        ...
