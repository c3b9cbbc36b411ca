"""Around each step of a turn: an unexpected error becomes a safe answer, a full record, and an intact state (AG-4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import DeadlineExceeded, LaneLost, ModelUnavailable, TurnCancelled, Unavailable
from orchestrator.redaction import hide_secrets
from orchestrator.telemetry import SignalType, get_logger
from orchestrator.telemetry.traces import note_failure

Step: TypeAlias = Callable[[RunningTurn, Modules], Awaitable[None]]

PASS_THROUGH = (TurnCancelled, LaneLost, DeadlineExceeded)

_log = get_logger(__name__)


async def guarded(step: Step, turn: RunningTurn, modules: Modules) -> None:
    """Run one step, unless an earlier one broke.

    Raises:
        TurnCancelled, LaneLost, DeadlineExceeded: the turn was ended from outside.
        Unavailable: a store is down; the turn is tried again from its journal.
    """
    if turn.broken:
        return
    try:
        await step(turn, modules)
    except PASS_THROUGH:
        raise
    except Exception as error:
        if isinstance(error, Unavailable) and not isinstance(error, ModelUnavailable):
            raise
        name = getattr(step, "__name__", str(step))
        note_failure(type(error).__name__)
        _log.exception(
            "A step of a turn broke.", step=name, turn=turn.work.turn_id, session=turn.lease.session_id
        )
        turn.context.log.signal(
            "agent",
            SignalType.CHECK,
            check=name,
            ok=False,
            why=hide_secrets(f"{type(error).__name__}: {error}"),
        )
        _put_back(turn, modules)


def _put_back(turn: RunningTurn, modules: Modules) -> None:
    """Throw the changes away, but for what tools have done for good: that is never forgotten."""
    broken = turn.changes.state
    effects = [note for note in broken.effects if note.turn_id == turn.work.turn_id]
    state = restore(turn, modules)
    state.effects.extend(effects)
    state.intake.labels = broken.intake.labels
    state.turn += 1
    turn.throw_away(state)
    turn.context.log.event("failed", code="internal_error")
    turn.answer = modules.res.apologise(turn.context, [note.summary or note.tool_id for note in effects])
    turn.broken = True


def restore(turn: RunningTurn, modules: Modules) -> DialogueState:
    """Decode the state as it was before the turn."""
    if not turn.prior_state:
        return DialogueState.new(turn.lease.session_id)
    return DialogueState.from_dict(turn.prior_state, modules.domain.flows)
