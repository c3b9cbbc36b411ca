"""CO-2: invalid output is requested again with the reason; loops over tools."""

import json

import pytest

from orchestrator.errors import ModelOutputInvalid
from orchestrator.models.engineer import tool_result
from orchestrator.models.schemas import closed
from parley.testing.scripted_model import Answer, Computed, Reply, Request, ToolUse
from tests.cases import for_each
from tests.integration.models.bench import GOOD, bench, calling, script, thinking


@for_each(
    ("bad", "reason"),
    [
        (Answer(text="Certainly! Here you are."), "not one JSON object"),
        (Answer(text='{"flows": ['), "not one JSON object"),
        (Answer(json={"flows": [{}]}), "$.flows[0]: 'dact' is a required property"),
        (Answer(text=""), "not one JSON object"),
    ],
    ids=["prose", "malformed", "schema", "empty"],
)
async def test_output_that_does_not_fit_is_asked_for_again_with_the_reason(bad, reason):
    async with bench(script(bad, Answer(json=GOOD))) as at:
        assert await at.think() == GOOD

    first, second = at.model.requests
    assert second.messages[:2] == first.messages
    assert [message["role"] for message in second.messages[2:]] == ["assistant", "user"]
    assert reason in second.messages[3]["content"]
    assert at.calls()[0]["repaired"] is True


async def test_members_that_nobody_asked_for_are_no_fault():
    """Endpoints that enforce no schema add some."""
    asked = closed(complete={"type": "boolean"})
    async with bench(script(Answer(json={"complete": True, "why": "so"}))) as at:
        found = await at.engineer.structured("nlu_think", thinking(), asked, calling())

    assert found["complete"] is True
    assert len(at.model.requests) == 1


async def test_output_is_repaired_once_and_then_given_up():
    async with bench(script(Answer(json={"flows": 3}))) as at:
        with pytest.raises(ModelOutputInvalid, match="nlu_think"):
            await at.think()
        assert at.engineer.available

    assert len(at.model.requests) == 2


async def test_a_truncated_answer_gets_twice_the_tokens_once():
    cut = Answer(json=GOOD, cut_at=12, finish_reason="length")

    async with bench(script(cut, Answer(json=GOOD), cut)) as at:
        assert await at.think() == GOOD
        with pytest.raises(ModelOutputInvalid, match="token limit"):
            await at.think()

    assert [request.body["max_tokens"] for request in at.model.requests] == [64, 128, 64, 128]
    assert at.model.requests[0].messages == at.model.requests[1].messages


async def test_a_loop_over_tools():
    def react(request: Request) -> Reply:
        results = [message for message in request.messages if message["role"] == "tool"]
        return Answer(text=f"Found {json.loads(results[0]['content'])['found']}.") if results else FIRST

    FIRST = ToolUse(calls=(("flight_search", {"day": "2026-01-05"}),))  # noqa: N806

    async with bench(script(Computed(react))) as at:
        step = await at.use_tools()
        (wanted,) = step.calls
        assert (wanted.name, wanted.arguments) == ("flight_search", {"day": "2026-01-05"})
        transcript = (step.reply, tool_result(wanted.id, {"found": "<3>"}))
        done = await at.use_tools(transcript=transcript)

    assert (done.text, done.calls) == ("Found <3>.", ())
    first, second = at.model.requests
    assert first.body["tools"][0]["function"]["name"] == "flight_search"
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert second.messages[3]["tool_call_id"] == second.messages[2]["tool_calls"][0]["id"] == wanted.id
