"""PL-2: what an Internal flow finds about a plan's inputs triggers the replanning check at the next step or turn."""

from __future__ import annotations

from typing import Any

from orchestrator.dialogue.records import Label
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject
from parley.testing.scripted_model import Answer
from tests.integration.models.test_plans_by_model import (
    COUNTER,
    KEEP,
    MET,
    REQUEST,
    TONER,
    Talk,
    outcomes,
    steps,
    talking,
)

ROUND = "do the service round of printer two"
LEAK = "Printer Two leaks toner and has been taken out of service."
STOP = Answer(json={"decision": "stop", "reason": "the printer is out of service"})


async def find(talk: Talk, text: str, data: Json = None, labels: tuple[str, ...] = ()) -> None:
    """What an Internal flow does with a finding."""
    simulator = talk.conversation.simulator
    entry = Entry("find_faults", "test", EntryKind.FINDING, simulator.now, text, data, labels=labels)
    await simulator.scratchpad.put(DEFAULT_TENANT, talk.conversation.session_id, (entry,))


def asked_to_replan(talk: Talk) -> list[JsonObject]:
    return [request.data for request in talk.model.requests if request.prompt_id == "plan_replan"]


async def test_a_finding_is_put_to_the_model_which_changes_the_plan() -> None:
    """Between two turns: the step at hand waits for a yes, nothing has ended, and the check is made."""
    async with talking(
        plan_decompose=steps(COUNTER, TONER), plan_replan=(KEEP, STOP), plan_complete=MET
    ) as talk:
        await talk.say(REQUEST)
        await find(talk, LEAK)
        turn = await talk.say("what can you do?")
        plan = await talk.plan()
    assert [asked["news"] for asked in asked_to_replan(talk)] == [[], [LEAK]]
    assert "the printer is out of service" in str(plan["revisions"])
    assert "prune" in outcomes(plan)
    assert [tool["tool_id"] for tool in turn["tools"]] == []


async def test_it_is_told_once() -> None:
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=KEEP, plan_complete=MET) as talk:
        await talk.say(REQUEST)
        await find(talk, LEAK)
        await talk.say("what can you do?")
        await talk.say("how are you?")
    assert [asked["news"] for asked in asked_to_replan(talk)] == [[], [LEAK]]


async def test_what_does_not_concern_the_plan_triggers_nothing() -> None:
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=KEEP, plan_complete=MET) as talk:
        await talk.say(REQUEST)
        await find(talk, "The user likes short answers.")
        await talk.say("what can you do?")
    assert [asked["news"] for asked in asked_to_replan(talk)] == [[]]


async def test_a_value_for_an_input_concerns_it_whatever_the_words() -> None:
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=KEEP, plan_complete=MET) as talk:
        await talk.say(REQUEST)
        await find(talk, "It moved.", {"printer": "P9"})
        await talk.say("what can you do?")
    assert [asked["news"] for asked in asked_to_replan(talk)] == [[], ["It moved."]]


async def test_without_a_model_the_check_is_made_by_rule_and_kept() -> None:
    """The rule continues; the finding is on record with the revision, and its labels with the session."""
    async with talking({"model": "off"}) as talk:
        await talk.say(ROUND)
        before: list[Any] = (await talk.plan())["revisions"]
        await find(talk, LEAK, labels=(Label.UNTRUSTED.value,))
        await talk.say("what can you do?")
        plan = await talk.plan()
    added = plan["revisions"][len(before) :]
    assert [(revision["outcome"], revision["why"]) for revision in added] == [("continue", LEAK)]
    assert talk.asked() == []
