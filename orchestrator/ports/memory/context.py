"""Context for blocked flows. A turn requests the context, and a background flow gathers it (PX-16)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from orchestrator.types import FlowId, Json, JsonObject, SessionId, TenantId, TurnId, UserId

GATHER_CONTEXT: Final = "gather_context"
HAND_OVER_CONTEXT: Final = "hand_over_context"
"""The background flow that submits late findings as a system turn, if the blocked flow still needs them."""
CONTEXT_READY: Final = "context_ready"
"""The action of the system turn that delivers findings."""


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """A request for context that helps a blocked flow.

    Args:
        flow_id: the blocked flow, which is an instance of `dact`.
        question: the open question, as text.
        slots: descriptions of the slots whose values would help, by slot name.
        known: the flow's slot values.
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
    """A piece of context found for a blocked flow.

    Args:
        source: ``scratchpad``, ``tasks``, ``turns``, ``rows`` or ``memory``.
        text: a description for skills.
        values: slot values, by slot name.
        score: relevance; higher is better.
        labels: capability labels inherited from the sources.
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
        return cls(body["source"], body["text"], body["values"], body["score"], tuple(body["labels"]))


@dataclass(frozen=True, slots=True)
class Findings:
    """All findings, best first. Empty if nothing was found or the search failed."""

    found: tuple[Finding, ...] = ()

    def values(self) -> JsonObject:
        """Return slot values by slot name, each from the best finding that has a value for the slot."""
        values: JsonObject = {}
        for finding in self.found:
            for name, value in finding.values.items():
                values.setdefault(name, value)
        return values


class ContextGathering(Protocol):
    """Background context gathering for a turn. Every method can raise Unavailable."""

    async def begin(self, question: ContextQuestion) -> str:
        """Start a run that gathers context, and return the run's ID. Each flow gets at most one run per turn."""
        ...

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> Findings | None:
        """Return the run's findings, or None if the run does not end within `timeout_s` seconds."""
        ...
