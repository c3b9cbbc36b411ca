"""IF-12: how the session lane decides on proposals."""

from __future__ import annotations

import orjson

from orchestrator.dialogue.changes.repair import repair
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.turns.turn import TurnInput, TurnKind
from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse, converse_after, state_of


def epoch_of(talk: Conversation) -> int:
    return talk.simulator.store.sessions[talk.session_id].epoch


async def propose(talk: Conversation, kind: str, change: object, *, epoch: int | None = None) -> dict:
    """Run a proposal as a system turn and return the record of the decision."""
    at = epoch_of(talk) if epoch is None else epoch
    action = {"name": "proposal", "payload": {"kind": kind, "change": change, "epoch": at, "flow": "test"}}
    given = TurnInput(action=action, form="action", kind=TurnKind.SYSTEM)
    return (await talk.submit(given))["proposal"]


async def test_a_summary_of_old_turns_removes_no_newer_ones() -> None:
    talk = converse("travel")
    for _ in range(3):
        await talk.say("hello")
    seen_at = epoch_of(talk)
    for text in ("I want to book a flight", "to Rome"):
        await talk.say(text)
    messages = state_of(talk)["messages"]

    decided = await propose(talk, "summary", {"text": "They greeted us.", "through_turn": 3}, epoch=seen_at)

    after = state_of(talk)
    assert decided["decision"] == "rebased"
    assert after["summary"] == {"text": "They greeted us.", "through_turn": 3}
    assert after["messages"] == messages
    assert after["turn"] == 5


async def test_an_older_summary_does_not_replace_a_newer_one() -> None:
    talk = converse("travel")
    for _ in range(4):
        await talk.say("hello")
    first = await propose(talk, "summary", {"text": "all", "through_turn": 4})
    second = await propose(talk, "summary", {"text": "some", "through_turn": 2})

    assert (first["decision"], second["decision"]) == ("applied", "dropped")
    assert state_of(talk)["summary"]["text"] == "all"


@for_each(
    ("kind", "change"),
    [
        ("summary", {"text": "x", "through_turn": 99}),
        ("summary", {"text": "x", "through_turn": "1"}),
        ("summary", "x"),
        ("abandon", {}),
        ("rewrite", {"stack": []}),
    ],
)
async def test_what_cannot_be_a_proposal_is_dropped_with_a_record(kind: str, change: object) -> None:
    talk = await converse_after("travel", "hello")
    before = state_of(talk)

    decided = await propose(talk, kind, change)

    assert decided["decision"] == "dropped"
    assert decided["reason"]
    assert state_of(talk) == {**before, "epoch": before["epoch"] + 1}


async def test_a_repair_of_a_state_that_has_gone_on_is_dropped() -> None:
    talk = await converse_after("travel", "I want to book a flight to Rome")
    seen_at = epoch_of(talk)
    await talk.say("from Paris")

    assert (await propose(talk, "repair", {}, epoch=seen_at))["decision"] == "dropped"


BREAKS = {
    "top": lambda state: state["stack"][-1].update(state="Pending", reason="interrupted"),
    "two are active": lambda state: state["stack"].insert(
        0, {**state["stack"][-1], "flow_id": "flow_below", "started_at": 1.0}
    ),
    "approval": lambda state: state["approvals"].append(
        {
            "approval_id": "a",
            "flow_id": "gone",
            "tool_id": "x",
            "arguments": {},
            "expires_at": 2.0,
        }
    ),
    "plan": lambda state: state["stack"][-1].update(plan_id="gone"),
}


async def broken(what: str) -> tuple[Conversation, dict]:
    talk = await converse_after("travel", "I want to book a flight to Rome")
    session = talk.simulator.store.sessions[talk.session_id]
    state = orjson.loads(session.state or b"")
    BREAKS[what](state)
    session.state = orjson.dumps(state)
    return talk, state


@for_each("what", BREAKS)
async def test_a_repair_does_what_its_diff_says(what: str) -> None:
    talk, state = await broken(what)
    mended, wrong = repair(state)

    decided = await propose(talk, "repair", {"diff": diff(state, mended)})

    assert decided["decision"] == "applied", decided
    assert decided["reason"] == " ".join(wrong)
    assert repair(state_of(talk))[1] == []
    assert state_of(talk)["stack"][-1]["state"] == "Active"


async def test_a_repair_that_would_do_something_else_is_dropped() -> None:
    talk, state = await broken("top")
    other = {**state, "stack": []}

    assert (await propose(talk, "repair", {"diff": diff(state, other)}))["decision"] == "dropped"
    assert state_of(talk)["stack"] == state["stack"]


async def test_tasks_that_waited_too_long_are_abandoned() -> None:
    talk = await converse_after("travel", "Book a flight to Madrid", "check my booking")
    waiting = [flow for flow in state_of(talk)["stack"] if flow["state"] == "Pending"]
    assert waiting

    assert (await propose(talk, "abandon", {"older_than_s": 3600}))["decision"] == "dropped"
    assert (await propose(talk, "abandon", {"older_than_s": 0}))["decision"] == "applied"

    left = {flow["flow_id"] for flow in state_of(talk)["stack"]}
    assert not left & {flow["flow_id"] for flow in waiting}


async def test_the_user_is_told_nothing_and_the_talk_goes_on() -> None:
    with_it, without = converse("travel"), converse("travel")
    replies = []
    for talk in (with_it, without):
        await talk.say("I want to book a flight to Rome")
        if talk is with_it:
            await propose(talk, "summary", {"text": "x", "through_turn": 1})
        replies.append((await talk.say("from Paris tomorrow"))["reply"])

    assert replies[0] == replies[1]
