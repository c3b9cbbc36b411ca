"""What should happen after a correction that came too late: the user's three answers (IR-4, RT-12)."""

from __future__ import annotations

from orchestrator.agent.corrections import repeat_with_changes
from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject
from orchestrator.world.remark import RemarkKind

KEEP, REPEAT, COMPENSATE = "keep_effect", "repeat_effect", "compensate_effect"
DECISIONS = frozenset({KEEP, REPEAT, COMPENSATE})


async def decide(turn: RunningTurn, modules: Modules, name: str, payload: JsonObject) -> None:
    """Carry out one of the three. Raises InvalidInput when the flow is not known any more."""
    turn.state.ambiguity.resolve()
    if name == KEEP:
        turn.world.remark(RemarkKind.STAYS)
        turn.carry_on = turn.state.stack.active is not None
        return
    flow = _find(turn, payload.get("flow_id"))
    changes: JsonObject = payload.get("changes") or {}
    if name == COMPENSATE and not await _undo(turn, modules, flow):
        return
    repeat_with_changes(turn, flow, changes)


async def _undo(turn: RunningTurn, modules: Modules, flow: BaseFlow) -> bool:
    """Undo everything that stands of a flow; False, with a remark, when something could not be undone."""
    for note in [note for note in turn.state.effects if note.flow_id == flow.flow_id and note.stands]:
        why_not = await modules.pex.compensate(turn.world, note)
        if why_not is not None:
            turn.world.remark(RemarkKind.FAILED, message=why_not, category="compensation")
            turn.carry_on = False
            return False
        turn.world.remark(RemarkKind.UNDONE, summary=note.summary)
    return True


def _find(turn: RunningTurn, flow_id: str | None) -> BaseFlow:
    known = [*turn.state.stack.flows, *turn.state.completed]
    flow = next((flow for flow in known if flow.flow_id == flow_id), None)
    if flow is None:
        raise InvalidInput("This task is no longer known.", field="action.payload.flow_id")
    return flow
