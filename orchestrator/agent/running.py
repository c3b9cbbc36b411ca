"""One turn on its way: the record that passes through the Agent's steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.context import World
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.answer import Answer
from orchestrator.turns.lease import Lease, OutboxEntry, Work
from orchestrator.types import JsonObject


@dataclass(slots=True)
class RunningTurn:
    """`before`: the state as it was, serialised; nobody changes it. `began`: monotonic seconds."""

    lease: Lease
    work: Work
    world: World
    before: JsonObject
    began: float
    understanding: Understanding | None = None
    carry_on: bool = False
    """Whether PEX has something to do: set by the uptake."""
    reroutes: int = 0
    seen: int = 0
    """How many of the world's finished flows their plans know of."""
    plan_edited: bool = False
    """The user changed a plan, which is to be checked at once."""
    plan_trouble: bool = False
    """A value that a plan was made with was corrected, which may be more than rules can mend."""
    refreshed: set[str] = field(default_factory=set[str])
    """Flows for which it was seen to that what they need is new enough."""
    outbox: list[OutboxEntry] = field(default_factory=list[OutboxEntry])
    """What is to be sent once the turn is committed, besides what every turn may make due."""
    answer: Answer | None = None
    broken: bool = False
    """An unexpected error happened; the state was put back to what it was."""

    @property
    def state(self) -> DialogueState:
        return self.world.state
