"""The `keep_going` loop: PEX carries out, RES clears the stack, until only the user can go on (AG-1)."""

from __future__ import annotations

from orchestrator.agent.failure import cascade, show_part
from orchestrator.agent.freshness import ensure_fresh
from orchestrator.agent.modules import Modules
from orchestrator.agent.plan.replanning import begin_step, look_after_plan
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.pex.execution import (
    Completed,
    Failed,
    GaveUp,
    NeedsInput,
    Parked,
    Partial,
    Recover,
    Stacked,
)
from orchestrator.telemetry import SignalType
from orchestrator.telemetry.phases import Phase
from orchestrator.telemetry.traces import note_failure


async def carry_out(turn: RunningTurn, modules: Modules) -> None:
    """Go round until nothing is left to do without the user, then answer; bounded per turn."""
    state, context = turn.changes.state, turn.context
    going = turn.carry_on and state.stack.active is not None
    for _ in range(context.world.domain.config.flow_management.keep_going_budget):
        if going:
            state.flags.keep_going = False
            stacked = await _execute(turn, modules)
        else:
            stacked = False
        modules.res.start(context)
        going = await look_after_plan(turn, modules, state.flags.keep_going or stacked)
        if not going:
            break
    else:
        context.log.signal("agent", SignalType.CHECK, check="keep_going_budget", ok=False)
    state.flags.keep_going = False
    if context.journal.stopped:
        done = [note for note in state.effects if note.turn_id == turn.work.turn_id and note.is_done]
        turn.changes.remark(RemarkKind.STOPPED, done=[note.summary or note.tool_id for note in done])
    with Phase("respond"):
        turn.answer = await modules.res.respond(context)


async def _execute(turn: RunningTurn, modules: Modules) -> bool:
    """One flow through PEX; a failure goes down the cascade, which may have another flow tried.

    True when it has put other flows above itself, which come next.
    """
    active = turn.changes.state.stack.active
    if active is not None:
        begin_step(turn)
        active.note_turn(turn.work.turn_id)
        await ensure_fresh(turn, modules, active)
    with Phase("execute"):
        ending = await modules.pex.execute(turn.context)
        failure = ending.failure if isinstance(ending, Recover) else ending
        if isinstance(failure, Failed):
            note_failure(failure.category.value)
    match ending:
        case Stacked():
            return True
        case Completed() | NeedsInput() | Parked() | GaveUp():
            return False
        case Partial():
            show_part(turn)
            return False
        case Failed() | Recover():
            again = await cascade(turn, modules, ending)
            return await _execute(turn, modules) if again else False
