"""Find the task that a correction is about, and correct it (IR-4)."""

from __future__ import annotations

from orchestrator.agent.corrections import ask_what_to_change, correct_flow
from orchestrator.agent.messages.unknown import be_unsure
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import shown
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import PARKED
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_slot_of


def take_correction(turn: RunningTurn, understood: Understanding) -> None:
    """Of the active flow, or of a completed one that `target` names; without values it is asked what changes."""
    flow = _find_corrected(turn, understood)
    if flow is None:
        be_unsure(turn, understood)
        return
    undecided = {
        name for name, m in understood.slots.items() if m.value is None and not m.candidates and not m.invalid
    }
    if len(understood.either) > 1:
        _ask_which_slot(turn, flow, understood)
    elif undecided:
        _ask_for_new_value(turn, flow, min(undecided))
    elif understood.slots:
        correct_flow(turn, flow, understood.slots)
    elif turn.changes.state.stack.get(flow.flow_id) is not None:
        ask_what_to_change(turn, flow)
    else:
        be_unsure(turn, understood)


def _find_corrected(turn: RunningTurn, understood: Understanding) -> BaseFlow | None:
    active = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if active is None and top is not None and top.status in PARKED and understood.slots:
        active = top
    target = understood.target
    if active is not None and target in {None, active.dact, active.flow_id}:
        return active
    done = reversed(turn.changes.state.completed)
    named = next((flow for flow in done if target in {flow.dact, flow.flow_id}), None)
    return named or active or turn.changes.state.find_completed()


def _ask_which_slot(turn: RunningTurn, flow: BaseFlow, understood: Understanding) -> None:
    """The value fits several slots: the user says which, nothing is changed before."""
    value = next(iter(understood.slots.values())).value
    options = [
        Option(
            f"Change the {name_slot_of(flow, name)} to {shown(turn, flow, name, value)}",
            "fill_slot",
            {"flow_id": flow.flow_id, "slot": name, "value": value},
        )
        for name in understood.either
    ]
    turn.changes.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=flow.flow_id,
        options=options,
        turn_id=turn.work.turn_id,
        metadata={"about": "change"},
    )
    turn.carry_on = False


def _ask_for_new_value(turn: RunningTurn, flow: BaseFlow, slot: str) -> None:
    """The user wants another value and has not said which: the old one stays until there is a new one."""
    turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    turn.changes.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=flow.flow_id, slot=slot, turn_id=turn.work.turn_id
    )
    turn.carry_on = False
