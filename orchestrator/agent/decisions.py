"""What should happen after a correction that came too late: the user's three answers (IR-4, RT-12)."""

from __future__ import annotations

from orchestrator.agent.asides import leave_open
from orchestrator.agent.corrections import KEEP, REPEAT, repeat_with_changes
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.pex.compensate import undo_before
from orchestrator.types import JsonObject
from orchestrator.world.remark import RemarkKind


def decide(turn: RunningTurn, name: str) -> None:
    """Carry out one of the three; which changes were wanted, the open question remembers."""
    payload = _find_payload(turn, name)
    if payload is None:
        turn.world.remark(RemarkKind.NOTHING_OPEN)
        leave_open(turn)
        return
    flow = _find(turn, payload["flow_id"])
    if name == KEEP or flow is None:
        turn.world.remark(RemarkKind.STAYS)
        turn.carry_on = turn.state.stack.active is not None
    else:
        fresh = repeat_with_changes(turn, flow, payload["changes"])
        if name != REPEAT:
            undo_before(fresh, flow.flow_id)


def _find_payload(turn: RunningTurn, name: str) -> JsonObject | None:
    """What the option carried; closes the question."""
    for entry in list(turn.state.ambiguity.open):
        for option in entry.options:
            if option.action_name == name:
                turn.state.ambiguity.resolve(entry)
                return option.payload
    return None


def _find(turn: RunningTurn, flow_id: str) -> BaseFlow | None:
    known = [*turn.state.stack.flows, *turn.state.completed]
    return next((flow for flow in known if flow.flow_id == flow_id), None)
