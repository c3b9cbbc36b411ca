"""What of the dialogue matters for understanding one message: a small frozen record.

`read_situation` takes it from the dialogue state; evaluations make their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.types import Json


@dataclass(frozen=True, slots=True)
class PastFlow:
    """A flow that is no longer active: interrupted, or completed in this session."""

    spec: FlowSpec
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Situation:
    """`asked`: the slot of the open question. `confirming`: the open question wants a yes or a no.

    `choices`: the candidates among which the user was asked to choose, as (value, label).
    `previous`: the user's previous message. `question`: the words of the open question.
    """

    today: date
    active: FlowSpec | None = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    asked: str | None = None
    confirming: bool = False
    choices: tuple[tuple[Json, str], ...] = ()
    interrupted: tuple[PastFlow, ...] = ()
    completed: tuple[PastFlow, ...] = ()
    previous: str = ""
    question: str = ""

    @property
    def open(self) -> bool:
        """Whether the agent waits for an answer."""
        return self.asked is not None or self.confirming or bool(self.choices)
