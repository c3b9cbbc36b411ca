"""Plans that a model creates, changes and assesses, over HTTP with the scripted endpoint (PL-1, PL-2, PL-3,
PL-5).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley.simulator import Conversation
from parley.testing.scripted_model import (
    Answer,
    Computed,
    Fail,
    Reply,
    Request,
    ScriptedModel,
)
from tests.cases import for_each
from tests.contract.in_memory.sessions import MemorySessions
from tests.integration.models.staging import rules, staged

REQUEST = "organise the work for the audit"
KEEP = Answer(json={"decision": "keep"})
MET = Answer(json={"complete": True, "missing": [], "summary": "The audit can come."})
COUNTER = {"dact": "read_counter", "slots": {"printer": "Printer One"}, "purpose": "count the pages"}
OTHER_COUNTER = {
    "dact": "read_counter",
    "slots": {"printer": "Printer Two"},
    "purpose": "count the other pages",
}
TONER = {"dact": "order_toner", "slots": {"printer": "Printer Two"}, "purpose": "order toner"}
DISK = {"dact": "wipe_disk", "slots": {"printer": "Printer One"}, "purpose": "wipe the disk"}
QUEUE = {"dact": "check_queue", "purpose": "look at the queue"}


@dataclass
class Talk:
    conversation: Conversation
    model: ScriptedModel

    async def say(self, text: str) -> JsonObject:
        return await self.conversation.say(text)

    async def plan(self) -> JsonObject:
        sessions = MemorySessions(self.conversation.simulator.store)
        return await sessions.plan(DEFAULT_TENANT, self.conversation.session_id)

    def asked(self) -> list[str | None]:
        return [request.prompt_id for request in self.model.requests]


@asynccontextmanager
async def talking(
    plans: JsonObject | None = None, **replies: Reply | tuple[Reply, ...]
) -> AsyncIterator[Talk]:
    """Start a conversation in the desk domain, with scripted answers by prompt."""
    async with staged(rules(**replies), "desk", nlu={"mode": "system1"}, plans=plans or {}) as stage:
        yield Talk(stage.simulator.converse(), stage.model)


def steps(*bodies: JsonObject, alternatives: str = "none") -> Answer:
    return Answer(json={"steps": list(bodies), "alternatives": alternatives})


def outcomes(plan: JsonObject) -> list[str]:
    return [revision["outcome"] for revision in plan["revisions"]]


def as_pairs(step: JsonObject) -> JsonObject:
    """Return a step in the form of models whose endpoint enforces the schema."""
    pairs = [{"name": name, "value": value} for name, value in step["slots"].items()]
    return {"needs": []} | step | {"slots": pairs}


@pytest.mark.parametrize("written", [dict, as_pairs])
async def test_a_model_decomposes_and_judges(written: Callable[[JsonObject], JsonObject]) -> None:
    """PL-1, PL-3: structured output from the catalogue; the goal is reached if the model says so."""
    decomposed = steps(written(COUNTER), written(TONER))
    async with talking(plan_decompose=decomposed, plan_replan=KEEP, plan_complete=MET) as talk:
        first = await talk.say(REQUEST)
        last = await talk.say("yes")
        plan = await talk.plan()
    assert "1. Count the pages\n2. Order toner" in first["reply"]
    assert first["completed"] == ["read_counter"]
    assert [tool["arguments"] for tool in first["tools"]] == [{"printer": "P1"}, {"printer": "P2"}]
    assert last["completed"] == ["order_toner", "arrange_work"]
    assert "The audit can come." in last["reply"]
    assert (plan["goal"], plan["progress"], plan["state"]) == (REQUEST, "2 of 2", "Completed")
    assert talk.asked() == ["plan_decompose", "plan_replan", "plan_complete"]


async def test_what_is_no_step_is_dropped_and_a_plan_in_a_plan_refused() -> None:
    """PL-1: unknown flows are removed, and a draft without a usable step is requested again."""
    nested = steps({"dact": "care"}, {"dact": "make_coffee"})
    async with talking(plan_decompose=(nested, steps(COUNTER)), plan_complete=MET) as talk:
        turn = await talk.say(REQUEST)
        again = talk.model.requests[1].data
    assert turn["completed"] == ["read_counter", "arrange_work"]
    assert again["problems"] == [
        "'care' cannot be a step.",
        "Unknown task 'make_coffee'.",
        "No steps are left.",
    ]


async def test_a_plan_that_nobody_can_make_is_said_to_be_so() -> None:
    async with talking(plan_decompose=steps({"dact": "care"})) as talk:
        turn = await talk.say(REQUEST)
    assert turn["flows"] == []
    assert "I don't know which steps this takes" in turn["reply"]
    assert talk.asked() == ["plan_decompose"] * 2


async def test_without_a_model_a_plan_without_a_recipe_cannot_be_made() -> None:
    async with talking({"model": "off"}) as talk:
        turn = await talk.say(REQUEST)
    assert "I don't know which steps this takes" in turn["reply"]
    assert talk.asked() == []


@for_each(
    ("drawn", "changed", "told", "names", "outcome"),
    [
        ((COUNTER, DISK, TONER), (TONER, DISK), "The order is now: order toner; wipe the disk",
         ["read_counter", "order_toner", "wipe_disk"], "reorder"),
        ((COUNTER, DISK), (DISK, TONER), "Added: order toner",
         ["read_counter", "wipe_disk", "order_toner"], "expand"),
        ((COUNTER, DISK, TONER), (TONER,), "Left out: wipe the disk",
         ["read_counter", "wipe_disk", "order_toner"], "prune"),
    ],
    ids=["reorders", "expands", "prunes"],
)  # fmt: skip
async def test_the_model_changes_a_plan(
    drawn: tuple[JsonObject, ...], changed: tuple[JsonObject, ...], told: str, names: list[str], outcome: str
) -> None:
    """PL-2"""
    change = Answer(json={"decision": "change", "steps": [*changed], "reason": "the toner is urgent"})
    async with talking(plan_decompose=steps(*drawn), plan_replan=(change, KEEP), plan_complete=MET) as talk:
        turn = await talk.say(REQUEST)
        plan = await talk.plan()

    assert f"the toner is urgent. {told}" in turn["reply"]
    assert [step["name"] for step in plan["steps"]] == names
    assert [step["reason"] for step in plan["steps"]].count("pruned") == (outcome == "prune")
    assert outcomes(plan) == ["decomposed", outcome]


async def test_a_replanning_that_makes_no_sense_changes_nothing() -> None:
    changed = Answer(json={"decision": "change", "steps": [{"dact": "care"}], "reason": "why not"})
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=changed, plan_complete=MET) as talk:
        await talk.say(REQUEST)
        plan = await talk.plan()
    assert outcomes(plan) == ["decomposed", "continue"]


async def test_the_rule_decides_when_the_model_is_down() -> None:
    """PL-2, NL-2"""
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=Fail(500)) as talk:
        first = await talk.say(REQUEST)
        last = await talk.say("yes")
        plan = await talk.plan()
    assert first["flags"]["degraded"] is True
    assert last["completed"] == ["order_toner", "arrange_work"]
    assert outcomes(plan) == ["decomposed", "continue", "continue", "finished"]


async def test_a_goal_that_is_not_met_gets_more_steps_and_then_an_honest_end() -> None:
    """PL-3: rounds are limited."""
    unmet = Answer(json={"complete": False, "missing": ["the auditor's coffee"], "summary": ""})
    async with talking(
        {"max_rounds": 2},
        plan_decompose=(steps(COUNTER), steps(OTHER_COUNTER)),
        plan_replan=KEEP,
        plan_complete=unmet,
    ) as talk:
        turn = await talk.say(REQUEST)
        plan = await talk.plan()
    assert turn["completed"] == ["read_counter", "read_counter"]
    assert "couldn't finish arranging the work" in turn["reply"]
    assert "Not done: the auditor's coffee" in turn["reply"]
    assert outcomes(plan) == ["decomposed", "continue", "expand", "continue", "unfinished"]
    assert (plan["state"], plan["reason"]) == ("Invalid", "failed")


def score(request: Request) -> Reply:
    """Score plans best that wipe the disk last."""
    good = [plan[-1]["dact"] == "wipe_disk" for plan in request.data["plans"]]
    fault = "wipe_disk comes too early"
    return Answer(
        json={"judgements": [{"score": 1.0} if one else {"score": 0.4, "faults": [fault]} for one in good]}
    )


async def test_a_long_decomposition_is_searched_for_and_the_tree_is_kept() -> None:
    """PL-5: from four steps on; candidates, scores, faults and the choice are stored."""
    first = steps(DISK, COUNTER, OTHER_COUNTER, TONER, alternatives="order")
    bad = {"steps": [TONER, DISK, COUNTER]}
    good = {"steps": [COUNTER, OTHER_COUNTER, DISK]}
    async with talking(
        plan_decompose=first,
        plan_alternatives=(Answer(json={"plans": [bad]}), Answer(json={"plans": [good]})),
        plan_score=Computed(score),
        plan_replan=KEEP,
        plan_complete=MET,
    ) as talk:
        turn = await talk.say(REQUEST)
        plan = await talk.plan()
        lessons = [r.data["lessons"] for r in talk.model.requests if r.prompt_id == "plan_alternatives"]
    assert turn["completed"] == ["read_counter", "read_counter"]
    assert [step["dact"] for step in plan["steps"]] == ["read_counter", "read_counter", "wipe_disk"]
    assert lessons == [[], ["wipe_disk comes too early"]]
    record: dict[str, Any] = plan["revisions"][0]["search"]
    assert record["calls"] <= record["limit"]
    assert record["nodes"][record["chosen"]]["score"] == 1.0
    assert [node["score"] for node in record["nodes"]] == [None, 0.4, 0.4, 1.0]


async def test_a_domain_says_how_many_plans_the_search_asks_for() -> None:
    """PL-5: for the root, including the first plan, and for each expanded plan."""
    long = steps(DISK, COUNTER, OTHER_COUNTER, TONER, alternatives="order")
    async with talking(
        {"tree_candidates": 2, "tree_variants": 5},
        plan_decompose=long,
        plan_alternatives=Answer(json={"plans": [{"steps": [TONER, DISK, COUNTER]}]}),
        plan_score=Computed(score),
        plan_replan=KEEP,
    ) as talk:
        await talk.say(REQUEST)
        asked = [r.messages[0]["content"] for r in talk.model.requests if r.prompt_id == "plan_alternatives"]
    wanted = [re.findall(r"Propose (\d+) different ways", prompt) for prompt in asked]
    assert wanted[:2] == [["1"], ["5"]]


async def test_the_search_keeps_to_its_budget_of_calls() -> None:
    """PL-5"""
    long = steps(DISK, COUNTER, OTHER_COUNTER, TONER, alternatives="order")
    async with talking(
        {"tree_model_calls": 3},
        plan_decompose=long,
        plan_alternatives=Answer(json={"plans": [{"steps": [COUNTER, TONER]}]}),
        plan_score=Computed(score),
        plan_replan=KEEP,
    ) as talk:
        await talk.say(REQUEST)
    searched = [prompt for prompt in talk.asked() if prompt in {"plan_alternatives", "plan_score"}]
    assert searched == ["plan_alternatives", "plan_score"]


async def test_after_a_failure_the_model_is_asked_about_a_declared_plan_too() -> None:
    """PL-2: a tool's failure triggers the check."""
    changed = Answer(json={"decision": "change", "steps": [TONER], "reason": "the server is down"})
    async with talking(plan_replan=(changed, KEEP)) as talk:
        turn = await talk.say("do the service round of printer two")
    assert set(talk.asked()) == {"plan_replan"}
    assert "the server is down. Left out: wipe the disk" in turn["reply"]


@for_each(
    ("plans", "drawn"),
    [
        ({"tree_search": "off"}, steps(DISK, COUNTER, OTHER_COUNTER, TONER, alternatives="order")),
        ({}, steps(DISK, COUNTER, OTHER_COUNTER, TONER)),
        ({}, steps(COUNTER, TONER, alternatives="order")),
    ],
    ids=["off", "obvious order", "short"],
)
async def test_the_tree_is_skipped(plans: JsonObject, drawn: Answer) -> None:
    """PL-5: the number of steps alone does not justify a search."""
    async with talking(plans, plan_decompose=drawn, plan_replan=KEEP) as talk:
        await talk.say(REQUEST)
    assert talk.asked()[0] == "plan_decompose"
    assert not {"plan_alternatives", "plan_score"} & set(talk.asked())


async def test_a_model_that_proposes_a_done_step_again_ends_the_plan() -> None:
    """PL-2: the step is neither run nor offered twice."""
    unmet = Answer(json={"complete": False, "missing": ["the toner"], "summary": ""})
    async with talking(plan_decompose=steps(COUNTER), plan_replan=KEEP, plan_complete=unmet) as talk:
        turn = await talk.say(REQUEST)
        again = talk.model.requests[-1].data
    assert [tool["tool_id"] for tool in turn["tools"]] == [turn["tools"][0]["tool_id"]]
    assert "'read_counter' is already done." in again["problems"]
    assert "Not done: the toner" in turn["reply"]


async def test_a_model_judges_declared_plans() -> None:
    """PL-2, PL-3: the replanning check and the end, also for declared plans."""
    async with talking(plan_replan=KEEP, plan_complete=MET) as talk:
        await talk.say("take care of printer two")
        turn = await talk.say("yes")
    assert turn["flows"] == []
    assert talk.asked() == ["plan_replan", "plan_complete"]


async def test_the_replanning_check_sees_the_notes_of_its_turn() -> None:
    """PL-2"""
    async with talking(plan_decompose=steps(COUNTER, TONER), plan_replan=KEEP) as talk:
        await talk.say(REQUEST)
        check = next(request.data for request in talk.model.requests if request.prompt_id == "plan_replan")
    assert check["notes"]
