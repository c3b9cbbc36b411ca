"""One turn on its way through the Agent's steps: what came in, what it would change, and how far it has come.

An unexpected error in a step becomes a safe answer, a full record, and an intact state (AG-4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from orchestrator.agent.modules import Modules
from orchestrator.context import TurnChanges, TurnContext
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Understanding
from orchestrator.errors import DeadlineExceeded, LaneLost, ModelUnavailable, TurnCancelled, Unavailable
from orchestrator.redaction import hide_secrets
from orchestrator.res.answer import Answer
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.traces import Phases, note_failure
from orchestrator.turns.lease import Lease, Work

ENDED_FROM_OUTSIDE = (TurnCancelled, LaneLost, DeadlineExceeded)

_log = get_logger(__name__)


@dataclass(slots=True)
class RunningTurn:
    """`changes`: those of the context. `began`: monotonic seconds. `carry_on`: PEX has something to do.

    `refreshed`: flows for which it was seen to that what they need is new enough.
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


Step: TypeAlias = Callable[[RunningTurn, Modules], Awaitable[None]]


async def run_steps(steps: Sequence[Step], turn: RunningTurn, modules: Modules) -> None:
    """Take the steps in their order; one that breaks ends the turn with an apology.

    Raises:
        TurnCancelled, LaneLost, DeadlineExceeded: the turn was ended from outside.
        Unavailable: a store is down; the turn is tried again from its journal.
    """
    for step in steps:
        turn.phases.enter(step.__name__)
        try:
            await step(turn, modules)
        except ENDED_FROM_OUTSIDE:
            raise
        except Exception as error:
            if isinstance(error, Unavailable) and not isinstance(error, ModelUnavailable):
                raise
            note_failure(type(error).__name__)
            _log.exception(
                "A step of a turn broke.",
                step=step.__name__,
                turn=turn.work.turn_id,
                session=turn.lease.session_id,
            )
            why = hide_secrets(f"{type(error).__name__}: {error}")
            turn.context.log.failed_check("agent", step.__name__, why)
            _put_back(turn, modules)
            return


def _put_back(turn: RunningTurn, modules: Modules) -> None:
    """Throw the changes away, but for what tools have done for good: that is never forgotten."""
    broken, prior = turn.changes.state, turn.context.world.prior_state
    effects = [note for note in broken.effects if note.turn_id == turn.work.turn_id]
    session_id = turn.lease.session_id
    state = DialogueState.from_dict(prior, modules.domain.flows) if prior else DialogueState.new(session_id)
    state.effects.extend(effects)
    state.intake.labels = broken.intake.labels
    state.turn += 1
    turn.changes = TurnChanges(state)
    turn.context = replace(turn.context, changes=turn.changes)
    turn.context.log.event("failed", code="internal_error")
    turn.answer = modules.res.apologise(turn.context, [note.summary or note.tool_id for note in effects])
