"""The `keep_going` loop: PEX carries out, RES clears the stack, until only the user can go on (AG-1)."""

from __future__ import annotations

from orchestrator.agent.failure import cascade
from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.pex.ending import Completed, Failed, NeedsInput, Parked, Recover
from orchestrator.telemetry import SignalType


async def carry_out(turn: RunningTurn, modules: Modules) -> None:
    """Go round until nothing is left to do without the user, then answer; bounded per turn."""
    state, world = turn.state, turn.world
    going = turn.carry_on and state.stack.active is not None
    for _ in range(world.domain.config.flow_management.keep_going_budget):
        if going:
            state.flags.keep_going = False
            await _execute(turn, modules)
        modules.res.start(world)
        going = state.flags.keep_going
        if not going:
            break
    else:
        world.signal("agent", SignalType.CHECK, check="keep_going_budget", ok=False)
    state.flags.keep_going = False
    turn.answer = await modules.res.respond(world)


async def _execute(turn: RunningTurn, modules: Modules) -> None:
    """One flow through PEX; a failure goes down the cascade, which may have another flow tried."""
    ending = await modules.pex.execute(turn.world)
    match ending:
        case Completed() | NeedsInput() | Parked():
            return
        case Failed() | Recover():
            if await cascade(turn, modules, ending):
                await _execute(turn, modules)
