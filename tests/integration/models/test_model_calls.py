"""CO-2: requests, records and costs of the prompt engineer's calls over the real client."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from orchestrator.adapters.models.chat import LibraryChat
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.errors import BudgetExceeded, ModelNotAllowed, ModelNotConfigured, ModelRejected, NotFound
from orchestrator.models.budget import BudgetLimits, Limit, Price
from orchestrator.models.engineer import PromptEngineer
from orchestrator.telemetry.signals import describe, log_signal
from orchestrator.types import FlowId
from parley.testing.scripted_model import Answer, Fail
from tests.integration.models.bench import (
    CONFIG,
    GOOD,
    PROMPTS,
    SCHEMA,
    bench,
    calling,
    quiet_board,
    script,
    wording,
)
from tests.integration.models.quirks import openai_error, sent


async def test_the_wire_carries_schema_name_metadata_and_data():
    """Model protocol: a stand-in can identify the prompt from the request alone."""
    async with bench(script(Answer(json=GOOD))) as at:
        assert await at.think() == GOOD

    (request,) = at.model.requests
    assert request.body["metadata"] == {
        "prompt_id": "nlu_think",
        "prompt_version": PROMPTS.get("nlu_think").version,
        "session_id": "session_a",
        "turn_id": "turn_b",
    }
    output = request.body["response_format"]
    assert output["type"] == "json_schema"
    assert (output["json_schema"]["name"], output["json_schema"]["schema"]) == ("nlu_think", SCHEMA)
    assert (request.model, request.body["max_tokens"]) == ("small", 64)
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.data["utterance"] == "Book a flight to Oslo"


async def test_an_endpoint_s_own_ways_are_followed():
    ways = {"store": True}

    config = replace(CONFIG, temperature=0.2)
    async with bench(script(Answer(text="Fine.")), config, extra_body=ways) as at:
        await at.word()

    body = at.model.requests[0].body
    assert (body["max_tokens"], body["store"], body["temperature"]) == (64, True, 0.2)
    assert "max_completion_tokens" not in body


async def test_every_call_leaves_one_signal():
    """CO-6: with prompt version, model, tokens and cost."""
    config = replace(CONFIG, prices={"small": Price(per_million_prompt=1, per_million_completion=2)})

    async with bench(script(Fail(500), Answer(text="Well done you")), config) as at:
        await at.word(calling().for_flow(FlowId("flow_c")))

    (signal,) = at.signals
    assert (signal.source, signal.session, signal.turn) == ("prompt_engineer", "session_a", "turn_b")
    assert (signal.flow, signal.prompt_version) == ("flow_c", PROMPTS.get("res_naturalize").version)
    (payload,) = at.calls()
    assert payload["outcome"] == "answered"
    assert payload["failures"] == [["small", "model_failed"]]
    assert (payload["model"], payload["requests"], payload["prompt_id"]) == ("small", 2, "res_naturalize")
    assert payload["cost_micros"] == payload["tokens"] + 3
    assert payload["tokens"] > 3


async def test_prompts_and_answers_are_kept_where_that_is_wanted_and_logged_nowhere():
    """CO-6: of the last request, without secrets; in the turn's signal, not in the log."""
    hidden = "my password=hunter22 please"
    with capture_logs() as logs:
        async with bench(script(Answer(text="Well done you")), keep_prompts=True) as at:
            await at.engineer.text("res_naturalize", wording(hidden), calling())
            await at.hear()
        for signal in at.signals:
            log_signal(signal)
        async with bench(script(Answer(text="Well done you"))) as silent:
            await silent.word()

    said, streamed = (describe(signal)["payload"] for signal in at.signals)
    assert [message["role"] for message in said["messages"]] == ["system", "user"]
    assert "my password=[secret] please" in said["messages"][1]["text"]
    assert said["answer"] == streamed["answer"] == {"role": "assistant", "text": "Well done you"}
    assert "messages" not in describe(silent.signals[0])["payload"]
    assert len(logs) == 2
    assert "Well done" not in str(logs)
    assert "Well done" not in str(at.signals)


async def test_a_turn_spends_its_budget_over_several_calls():
    config = replace(CONFIG, budgets=BudgetLimits(turn=Limit(tokens=1200)))
    call = calling()

    async with bench(script(Answer(text="word " * 60)), config) as at:
        assert await at.word(call)
        results = await asyncio.gather(*(at.word(call) for _ in range(5)), return_exceptions=True)
        assert BudgetExceeded in {type(result) for result in results}
        assert {type(result) for result in results} <= {BudgetExceeded, str}
        assert await at.word(calling()), "another turn has its own"

    assert call.spending.spent.tokens <= 1200


async def test_without_an_endpoint_nothing_is_available():
    """UI-2: no key is needed."""
    engineer = PromptEngineer({}, PROMPTS, CONFIG, quiet_board())

    assert not engineer.available
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        await engineer.text("res_naturalize", wording(), calling())
    with pytest.raises(NotFound, match="nlu_dream"):
        await engineer.text("nlu_dream", wording(), calling())


async def test_the_key_is_sent_and_shown_nowhere():
    async with bench(script(Fail(401, message="no")), api_key="secret-key") as at:
        with pytest.raises(ModelNotAllowed) as caught:
            await at.word()

    assert at.model.requests[0].headers["authorization"] == "Bearer secret-key"
    shown = [str(caught.value), str(at.signals), repr(Endpoint(base_url="http://x", api_key="secret-key"))]
    assert not [text for text in shown if "secret" in text]
    assert LibraryChat(Endpoint(base_url="http://user:secret@host/v1")).endpoint == "http://host/v1"


async def test_a_refusal_is_one_warning_that_says_why():
    """The log line for operators has endpoint, status, code and field."""
    error = openai_error("Unsupported value", code="unsupported_value", param="frobnicate")
    async with bench(script(sent(error, 400))) as at:
        with pytest.raises(ModelRejected):
            await at.think()
    with capture_logs() as lines:
        for signal in at.signals:
            log_signal(signal)

    [line] = lines
    assert (line["event"], line["log_level"]) == ("A model call failed.", "warning")
    assert (line["endpoint"], line["status"], line["code"]) == (at.model.base_url, 400, "unsupported_value")
    assert (line["outcome"], line["field"]) == ("model_rejected", None)
