"""A turn on its way through the Agent's steps: its input, its changes, and its progress."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator.agent.modules import Modules
from orchestrator.context import Answer, TurnChanges, TurnContext
from orchestrator.dialogue.understanding import Understanding
from orchestrator.telemetry.traces import Phases
from orchestrator.turns.lease import Lease, Work


@dataclass(slots=True)
class RunningTurn:
    """A running turn.

    `changes`: those of the context. `began`: monotonic seconds. `carry_on`: PEX has something to do.
    `refreshed`: flows whose required summaries and memories were checked.
    """

    lease: Lease
    work: Work
    context: TurnContext
    changes: TurnChanges
    phases: Phases
    began: float
    understanding: Understanding | None = None
    carry_on: bool = False
    reroutes: int = 0
    refreshed: set[str] = field(default_factory=set[str])
    answer: Answer | None = None
    accepted_at: float = 0.0
    """Arrival time of the message, in Unix seconds by this machine's clock, like those of questions."""


Step: TypeAlias = Callable[[RunningTurn, Modules], Awaitable[None]]
