"""Carry one turn through the Agent's steps: what came in, what it would change, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.context import TurnChanges, TurnContext
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.answer import Answer
from orchestrator.turns.lease import Lease, Work
from orchestrator.types import JsonObject


@dataclass(slots=True)
class PlanProgress:
    """What the replanning check has still to look at in this turn.

    `seen`: how many of the turn's finished flows their plans know of. `edited`: the user changed a plan.
    `in_doubt`: a value that a plan was made with was corrected, which may be more than rules can mend.
    """

    seen: int = 0
    edited: bool = False
    in_doubt: bool = False


@dataclass(slots=True)
class RunningTurn:
    """`changes` are the context's own. `began`: monotonic seconds. `carry_on`: PEX has something to do.

    `refreshed`: flows for which it was seen to that what they need is new enough. `broken`: an unexpected
    error happened, and the changes were thrown away.
    """

    lease: Lease
    work: Work
    context: TurnContext
    changes: TurnChanges
    began: float
    understanding: Understanding | None = None
    carry_on: bool = False
    reroutes: int = 0
    plan: PlanProgress = field(default_factory=PlanProgress)
    refreshed: set[str] = field(default_factory=set[str])
    answer: Answer | None = None
    broken: bool = False

    @property
    def prior_state(self) -> JsonObject:
        """The state as it was before the turn, serialised; empty in a new session."""
        return self.context.world.prior_state

    def throw_away(self, state: DialogueState) -> None:
        """Forget everything that the turn would change; it goes on from `state`."""
        self.changes = TurnChanges(state)
        self.context = replace(self.context, changes=self.changes)
