"""The turn around its modules: errors become answers, and states are decoded once."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.agent import agent as agent_module
from orchestrator.agent.messages import MESSAGES
from orchestrator.dialogue.understanding import MessageKind
from orchestrator.errors import DeadlineExceeded, LaneLost, TurnCancelled
from tests.trained import converse, converse_after, state_of


def test_every_kind_of_message_is_in_the_list_once() -> None:
    """IR-1, NL-4"""
    assert set(dict(MESSAGES)) == set(MessageKind)
    assert len(MESSAGES) == len(MessageKind)


def break_at(step_name: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make one step of the turn raise after its work."""
    steps = []
    for step in agent_module.STEPS:
        if step.__name__ != step_name:
            steps.append(step)
            continue

        async def broken(turn: Any, modules: Any, step: Any = step) -> None:
            await step(turn, modules)
            raise error

        steps.append(broken)
    monkeypatch.setattr(agent_module, "STEPS", tuple(steps))


@pytest.mark.parametrize("step", ["understand", "dispatch", "carry_out", "archive"])
async def test_an_unexpected_error_leaves_the_state_as_it_was(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-4: a safe reply, a record, and an intact state with the message."""
    talk = await converse_after("desk", "order toner")
    before = state_of(talk)
    break_at(step, RuntimeError("the secret is 42"), monkeypatch)

    turn = await talk.say("for printer one")

    assert turn["status"] == "done"
    assert "went wrong on my end" in turn["reply"]
    assert "42" not in turn["reply"]
    after = state_of(talk)
    assert after["stack"] == before["stack"]
    assert after["ambiguity"] == before["ambiguity"]
    assert [message["text"] for message in after["messages"][-2:]] == ["for printer one", turn["reply"]]
    assert any("the secret is 42" in signal.payload.get("why", "") for signal in talk.simulator.signals)


@pytest.mark.parametrize("error", [RuntimeError("boom"), DeadlineExceeded("Late."), TurnCancelled("Stop.")])
async def test_a_yes_after_a_message_was_lost_has_the_offer_made_anew(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AM-3, AG-4: the lost message changed the offer, so the next confirmation does not count yet."""
    talk = await converse_after("desk", "order toner for printer two")
    with monkeypatch.context() as broken:
        break_at("dispatch", error, broken)
        await talk.say("for printer one instead")

    turn = await talk.say("yes")

    assert turn["ambiguity"]["level"] == "confirmation"
    assert not state_of(talk)["effects"]
    await talk.say("yes")
    assert [note["arguments"] for note in state_of(talk)["effects"]] == [{"offer": "T-3"}]


async def test_what_was_done_for_good_is_told_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """AG-4, RT-12: the order exists, and the reply does not claim that nothing changed."""
    talk = await converse_after("desk", "order toner for printer two")
    break_at("carry_out", RuntimeError("boom"), monkeypatch)

    turn = await talk.say("yes")

    assert "already ordered the toner (O-T-3)" in turn["reply"]
    assert "Nothing was changed" not in turn["reply"]
    assert [note["tool_id"] for note in state_of(talk)["effects"]] == ["toner_order"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TurnCancelled("Stop."), "cancelled"),
        (DeadlineExceeded("Late."), "failed"),
        (LaneLost("Gone."), "running"),
    ],
)
async def test_what_ends_a_turn_from_outside_passes_through(
    error: Exception, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-4, RT-7"""
    talk = converse("desk")
    break_at("carry_out", error, monkeypatch)

    turn = await talk.say("order toner")

    assert turn["status"] == status


async def test_the_turn_object_is_complete() -> None:
    """AG-1: the result of a turn, as in `--json`."""
    talk = converse("desk")

    turn = await talk.say("order toner for printer one")

    assert turn["session_id"] == talk.session_id
    assert (turn["seq"], turn["epoch"], turn["status"]) == (1, 1, "done")
    assert turn["flows"] == [
        {"dact": "order_toner", "state": "Active", "reason": None, "slots": {"printer": "P1"}}
    ]
    assert turn["tools"] == [{"tool_id": "toner_find", "arguments": {"printer": "P1"}, "status": "ok"}]
    assert [action["name"] for action in turn["actions"]] == ["fill_slot", "fill_slot"]
    assert turn["ambiguity"]["slot"] == "offer"
    assert turn["duration_ms"] > 0


async def test_events_tell_the_turn_in_order() -> None:
    """RT-15, RS-1"""
    talk = await converse_after("desk", "order toner for printer two", "yes")

    events = talk.simulator.store.sessions[talk.session_id].events

    told = [event.type for event in events if event.type != "accepted"]
    assert told == [
        "started", "flow_pushed", "tool_started", "tool_finished", "answer",
        "started", "tool_started", "tool_finished", "flow_popped", "block", "answer",
    ]  # fmt: skip
