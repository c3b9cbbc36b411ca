"""What left the stack goes to the archive; what grows is cut back; the conversation gets its lines (ST-3, FS-9)."""

from __future__ import annotations

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.plan import current_plan
from orchestrator.dialogue.state import StateLimits
from orchestrator.memory.notes import let_go
from orchestrator.types import JsonObject


async def archive(turn: RunningTurn, modules: Modules) -> None:
    """Bring the state into the form in which it is kept."""
    memory = modules.domain.config.memory
    limits = StateLimits(
        messages=memory.max_history_messages,
        trace=memory.max_trace_entries,
        completed=memory.completed_flows,
    )
    state = turn.state
    state.archive(turn.world.finished, limits)
    state.flags.has_plan = current_plan(state.stack) is not None
    if state.stack.top is None:
        state.flags.natural_birth = True
    state.trace.append(_trace(turn))
    state.prune(limits)
    let_go(state)


def _trace(turn: RunningTurn) -> JsonObject:
    """One small entry per turn: what was understood and what came of it."""
    entry: JsonObject = {"turn": turn.state.turn}
    if turn.understanding is not None:
        entry["kind"] = turn.understanding.kind.value
    if completed := [flow.dact for flow in turn.world.completed]:
        entry["completed"] = completed
    return entry
