"""The Agent, which runs a turn through NLU, PEX and RES, and decides what to commit (AG-1).

The Agent itself does not write to stores; only journal steps and tools do. After an unexpected error in a
step, the user gets an apology, and the turn's changes are discarded, except for side effects that tools have
committed (AG-4).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from orchestrator.agent.interjections import weigh
from orchestrator.agent.modules import Modules
from orchestrator.agent.results import accept_result
from orchestrator.agent.running import RunningTurn, Step
from orchestrator.agent.steps import STEPS
from orchestrator.agent.steps.load import load
from orchestrator.agent.steps.record import record
from orchestrator.agent.system_turns import (
    PROPOSAL,
    commit_repairs,
    decide_proposal,
    keep_for_person,
    resume_with_findings,
)
from orchestrator.context import TurnChanges
from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import ENDED_FROM_OUTSIDE, ModelUnavailable, Unavailable
from orchestrator.ports.memory.context import CONTEXT_READY
from orchestrator.redaction import hide_secrets
from orchestrator.runtime.journal import Journal
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.traces import Phases, note_failure
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.repair import REPAIR
from orchestrator.turns.scheduled import RESULT
from orchestrator.turns.turn import TurnKind

_log = get_logger(__name__)


class Agent:
    """The agent for one domain in one process. Each turn's data is in a `RunningTurn`."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self.deadline_s = modules.domain.config.session.deadline_s

    async def run_turn(
        self,
        lease: Lease,
        work: Work,
        journal: Journal,
        end: Callable[[RunningTurn, Modules], TurnCommit] = record,
    ) -> TurnCommit:
        """Run a turn and return its commit. `end`: builds the commit after the turn's steps have run.

        Raises TurnCancelled, LaneLost or DeadlineExceeded if the turn was ended from outside. Raises
        Unavailable if a store is down; the worker then retries the turn from its journal.
        """
        modules = self._modules
        with Phases("load") as phases:
            given = work.input
            action = (given.action or {}).get("name") if given.kind is TurnKind.SYSTEM else None
            if action == PROPOSAL:
                return decide_proposal(lease, work, modules)
            if action == REPAIR:
                return await commit_repairs(lease, work, journal, modules)
            turn = load(lease, work, journal, modules, phases)
            if turn.context.state.person is not None and given.kind is TurnKind.USER:
                return keep_for_person(turn, modules)
            journal.hear = partial(weigh, turn, modules)
            try:
                steps = await _TAKING_UP[action](turn, modules) if action in _TAKING_UP else STEPS
                if isinstance(steps, TurnCommit):
                    return steps
                await _take_steps(steps, turn, modules)
                phases.enter("record")
                return end(turn, modules)
            finally:
                journal.hear = None  # breaks a reference cycle


_TAKING_UP = {CONTEXT_READY: resume_with_findings, RESULT: accept_result}
"""Handlers of system turns that deliver data to a waiting flow, by action name."""


async def _take_steps(steps: Sequence[Step], turn: RunningTurn, modules: Modules) -> None:
    """Run the steps in order. An unexpected error ends the turn with an apology.

    Raises the errors in `ENDED_FROM_OUTSIDE`, and Unavailable if a store is down.
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
                "A turn step failed.",
                step=step.__name__,
                turn=turn.work.turn_id,
                session=turn.lease.session_id,
            )
            why = hide_secrets(f"{type(error).__name__}: {error}")
            turn.context.log.failed_check("agent", step.__name__, why)
            _put_back(turn, modules)
            return


def _put_back(turn: RunningTurn, modules: Modules) -> None:
    """Discard the turn's changes except committed side effects, and apologize in the answer."""
    broken, prior = turn.context.state, turn.context.world.prior_state
    effects = [note for note in broken.effects if note.turn_id == turn.work.turn_id]
    session_id = turn.lease.session_id
    state = DialogueState.from_dict(prior, modules.domain.flows) if prior else DialogueState.new(session_id)
    state.keep_done(broken, effects)
    state.begin_turn()
    turn.context = replace(
        turn.context, state=state, changes=TurnChanges(understanding=turn.context.changes.understanding)
    )
    turn.context.log.event("failed", code="internal_error")
    turn.answer = modules.res.apologise(turn.context, [note.summary or note.tool_id for note in effects])
