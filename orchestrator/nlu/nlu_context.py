"""What of the dialogue matters for understanding one message: a small frozen record.

`read_situation` takes it from the dialogue state; evaluations make their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache

from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import INTERRUPTED
from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import Json

_PAST_AT_HAND = 3


@dataclass(frozen=True, slots=True)
class PastFlow:
    """A flow that is no longer active: interrupted, or completed in this session."""

    spec: FlowSpec
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    outputs: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Situation:
    """`asked`: the slot of the open question. `confirming`: the open question wants a yes or a no.

    `options`: the suggested replies, of which a message may name one. `candidates`: the values
    among which the user was asked to choose. `completed`: latest first. `previous`: the user's
    previous message. `own`: values that only this session has, by entity. `question`: the words of the open question.
    """

    today: date
    active: FlowSpec | None = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    asked: str | None = None
    confirming: bool = False
    options: tuple[Option, ...] = ()
    candidates: tuple[Json, ...] = ()
    interrupted: tuple[PastFlow, ...] = ()
    completed: tuple[PastFlow, ...] = ()
    previous: str = ""
    own: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    question: str = ""

    @property
    def open(self) -> bool:
        """Whether the agent waits for an answer."""
        return self.asked is not None or self.confirming or bool(self.options)


def read_situation(state: DialogueState, now: float) -> Situation:
    """See a dialogue state as System 1 needs it. `now`: unix seconds."""
    stack = state.stack
    active = stack.top
    current = state.ambiguity.current
    confirming = current is not None and current.level is Level.CONFIRMATION
    return Situation(
        today=day_of(now),
        active=None if active is None else active.spec,
        values={} if active is None else values_of(active),
        asked=None if current is None or confirming else current.slot,
        confirming=confirming or bool(state.approvals and active is not None and _awaits(state, active)),
        options=() if current is None or confirming else tuple(current.options),
        candidates=() if current is None else tuple(current.candidates),
        interrupted=tuple(
            PastFlow(flow.spec, values_of(flow)) for flow in stack.flows if flow.standing == INTERRUPTED
        ),
        completed=tuple(
            PastFlow(flow.spec, values_of(flow), flow.outputs)
            for flow in reversed(state.completed[-_PAST_AT_HAND:])
        ),
        own=state.intake.entities,
        previous=next((m.text for m in reversed(state.history.messages) if m.role == "user"), ""),
        question="" if current is None else current.question,
    )


def values_of(flow: BaseFlow) -> dict[str, Json]:
    """The filled slots of a flow, without the marks of where they came from."""
    return {name: held.value for name, held in flow.slots.items()}


def _awaits(state: DialogueState, flow: BaseFlow) -> bool:
    return any(approval.flow_id == flow.flow_id for approval in state.approvals)


@lru_cache(maxsize=64)
def _day(days: int) -> date:
    return datetime.fromtimestamp(days * 86_400, UTC).date()


def day_of(now: float) -> date:
    """The day (UTC) of a moment in unix seconds."""
    return _day(int(now // 86_400))
