"""ST-1, ST-3, FS-7, FS-9, IR-3, PX-17: contents and limits of the dialogue state."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.dialogue.changes.correction import reopen
from orchestrator.dialogue.changes.inheritance import take_inputs
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import FAILED
from orchestrator.dialogue.questions import AskSlot, PendingCall
from orchestrator.dialogue.records import EffectNote, Flags, Message, PendingApproval
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.state import DialogueState, StateLimits
from orchestrator.dialogue.storage.serialization import apply, diff
from orchestrator.dialogue.understanding import Digression, FlowScore
from orchestrator.types import Dact, FlowId, SessionId, ToolId, TurnId
from tests.unit.dialogue.factories import (
    BOOK_FLIGHT,
    CHAT,
    CHECK_BOOKING,
    FLOW_TYPES,
    MODIFY_BOOKING,
    push_plan,
)


def make_state() -> DialogueState:
    return DialogueState.new(SessionId("session_1"))


def make_approval(flow: BaseFlow) -> PendingApproval:
    return PendingApproval("approval_1", flow.flow_id, ToolId("flight_book"), {"to": ["JFK"]}, 20.0)


def finish(state: DialogueState, cls: type[BaseFlow], at: float, **outputs: Any) -> BaseFlow:
    flow = cls(at)
    state.stack.push(flow, at)
    flow.note_turn(TurnId(f"turn_{at:.0f}"))
    flow.outputs.update(outputs)
    state.stack.complete(flow, at)
    state.archive(state.stack.pop_finished(at))
    return flow


def make_full_state() -> DialogueState:
    state = make_state()
    state.turn = 7
    state.predict("Book", [FlowScore(Dact("chat"), 0.1), FlowScore(Dact("book_flight"), 0.9)])
    finish(state, CHECK_BOOKING, 1.0, booking_ref="BK-1")
    push_plan(state.stack, BOOK_FLIGHT, CHAT)
    book = state.stack.flows[-1]
    book.fill_slots_by_label({"origin": "LHR"}, turn_id=TurnId("turn_2"))
    state.stack.fall_back(MODIFY_BOOKING, 3.0)
    top = state.stack.flows[-1]
    state.flags = Flags(keep_going=True, has_plan=True, natural_birth=False)
    state.ambiguity.declare(PendingCall(flow_id=top.flow_id, candidate="c", arguments={"tried": [1]}))
    state.digression.record(Digression.HELP)
    state.approvals.append(make_approval(top))
    state.say("user", "change my booking")
    state.history.trace.append({"phase": "nlu", "score": 0.9})
    state.effects.append(
        EffectNote(ToolId("x_do"), top.flow_id, {"a": [1]}, {"b": 2}, "Done.", result={"id": 3})
    )
    return state


def test_st1_the_state_comes_back_from_json() -> None:
    state = make_full_state()
    body = json.loads(json.dumps(state.serialize()))
    again = DialogueState.from_dict(body, FLOW_TYPES)
    assert again.serialize() == body == state.serialize()
    assert again.ambiguity.stack is again.stack
    assert again.stack.departed[0].dact == "book_flight"
    assert again.flags == state.flags
    assert again.digression == state.digression
    assert again.approvals == state.approvals
    assert again.history.messages == state.history.messages
    assert again.effects == state.effects
    assert again.prediction.candidates == state.prediction.candidates


def test_st1_documents_and_state_share_nothing_that_changes() -> None:
    state = make_full_state()
    body = state.serialize()
    text = json.dumps(body)
    again = DialogueState.from_dict(body, FLOW_TYPES)
    for changed in (state, again):
        changed.stack.flows[-1].notes["x"] = 1
        changed.stack.flows[-1].turn_ids.append(TurnId("turn_9"))
        changed.approvals[0].arguments["to"].append("CDG")
        changed.effects[0].slots["a"].append(2)
        changed.ambiguity.open[0].put("Shall I?")
        changed.completed[0].outputs["booking_ref"] = "BK-2"
        changed.history.trace.append({})
        changed.say("agent", "hello")
    assert json.dumps(body) == text
    assert apply(body, diff(body, again.serialize())) == again.serialize()


def test_st1_the_three_best_candidates_are_kept() -> None:
    state = make_state()
    state.predict("Book", [FlowScore(Dact(f"flow_{n}"), n / 10) for n in range(5)])
    assert [flow.dact for flow in state.prediction.candidates] == ["flow_4", "flow_3", "flow_2"]
    assert state.prediction.flow == "flow_4"
    state.predict(None, [])
    assert (state.prediction.intent, state.prediction.flow) == (None, None)


def test_fs7_inputs_come_from_the_latest_completed_flow_that_has_them() -> None:
    state = make_state()
    finish(state, CHECK_BOOKING, 1.0, booking_ref="BK-1")
    finish(state, CHECK_BOOKING, 2.0, booking_ref="BK-2")
    finish(state, CHAT, 3.0)
    modify = MODIFY_BOOKING(4.0)
    assert take_inputs(state, modify) == ["booking_ref"]
    held = modify.slots["booking_ref"]
    assert (held.value, held.source, held.turn_id) == ("BK-2", SlotSource.INHERITED, "turn_2")
    assert modify.value("booking_ref") == "BK-2"
    assert modify.fill_slots_by_label({"booking_ref": "BK-3"}) == []
    assert modify.slots["booking_ref"].source is SlotSource.USER


def test_fs7_what_is_held_or_does_not_fit_is_not_inherited() -> None:
    state = make_state()
    finish(state, BOOK_FLIGHT, 1.0, booking_ref="two words")
    assert take_inputs(state, CHECK_BOOKING(2.0)) == []
    check = CHECK_BOOKING(2.0)
    check.fill_slots_by_label({"booking_ref": "BK-9"})
    finish(state, BOOK_FLIGHT, 1.0, booking_ref="BK-1")
    assert take_inputs(state, check) == []
    assert check.value("booking_ref") == "BK-9"


def test_fs7_declared_outputs_default_to_slots_of_the_same_name() -> None:
    state = make_state()
    book = BOOK_FLIGHT(1.0)
    state.stack.push(book, 1.0)
    book.fill_slots_by_label({"destination": "JFK"})
    book.outputs["booking_ref"] = "BK-1"
    state.stack.complete(book)
    assert state.archive(state.stack.pop_finished(2.0)) == [book]
    assert book.outputs == {"booking_ref": "BK-1", "destination": "JFK"}


def test_fs9_what_left_takes_its_questions_and_approvals_along() -> None:
    state = make_state()
    book, check = BOOK_FLIGHT(1.0), CHECK_BOOKING(2.0)
    for flow in (book, check):
        state.stack.push(flow, 1.0)
        state.ambiguity.declare(AskSlot(flow_id=flow.flow_id))
        state.approvals.append(make_approval(flow))
    state.stack.invalidate(check, FAILED)
    assert state.archive(state.stack.pop_finished(3.0)) == [check]
    assert state.completed == []
    assert [entry.flow_id for entry in state.ambiguity.open] == [book.flow_id]
    assert [approval.flow_id for approval in state.approvals] == [book.flow_id]


def test_st3_the_working_state_is_bounded() -> None:
    state = make_state()
    state.stack.push(BOOK_FLIGHT(0.0, flow_id="flow_1"), 0.0)
    for number in range(300):
        state.say("user", str(number))
        state.history.trace.append({"n": number})
        state.effects.append(EffectNote(ToolId("x_do"), FlowId("flow_1"), {}, {}))
        finish(state, CHAT, float(number))
    state.prune()
    assert (len(state.history.messages), len(state.history.trace), len(state.completed)) == (50, 100, 10)
    assert state.history.messages[-1] == Message("user", "299")
    assert state.history.trace[0] == {"n": 200}
    assert state.completed[-1].started_at == 299.0
    assert len(state.effects) == 50
    state.prune(StateLimits(messages=2, trace=0, completed=1, effects=0))
    kept = (state.history.messages, state.history.trace, state.completed, state.effects)
    assert [len(one) for one in kept] == [2, 0, 1, 0]


def test_rt12_what_was_done_is_known_as_long_as_the_flow_that_did_it() -> None:
    state = make_state()
    plan, (step, _) = push_plan(state.stack, CHECK_BOOKING, MODIFY_BOOKING)
    state.stack.complete(step, 0.0)
    state.archive(state.stack.pop_finished(0.0))
    done = finish(state, BOOK_FLIGHT, 1.0)
    fresh = reopen(done, 2.0)
    for flow_id in (step.flow_id, done.flow_id, fresh.flow_id, FlowId("flow_gone")):
        state.effects.append(EffectNote(ToolId("x_do"), flow_id, {}, {}))
    state.stack.push(fresh, 2.0)
    for number in range(3, 20):
        finish(state, CHAT, float(number))
    state.prune()
    assert done not in state.completed
    assert [note.flow_id for note in state.effects] == [step.flow_id, done.flow_id, fresh.flow_id]

    for flow in (fresh, plan):
        state.stack.cancel(flow)
    state.archive(state.stack.pop_finished(20.0))
    state.prune()
    assert state.effects == []
