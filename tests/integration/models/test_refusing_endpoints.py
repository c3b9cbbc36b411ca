"""CO-2: refused request fields are omitted or replaced, remembered, and displayed."""

from contextlib import suppress
from dataclasses import replace

import pytest

from orchestrator.errors import (
    ModelContextExceeded,
    ModelFiltered,
    ModelNotAllowed,
    ModelQuotaExceeded,
    ModelRejected,
    ModelTimedOut,
    ModelUnknown,
)
from orchestrator.models.config import ModelChoice
from orchestrator.models.engineer import tool_result
from orchestrator.ports.language_model import Effort, ToolChoice
from parley.testing.scripted_model import Computed, Fail, Hang, Request, Rule, Script, ToolUse
from tests.cases import for_each
from tests.integration.models.bench import CONFIG, GOOD, SEARCH, bench, calling, script, thinking
from tests.integration.models.quirks import (
    CALL,
    FINE,
    GOOD_ANSWER,
    completion,
    form_of,
    openai_error,
    refusing,
    sent,
)


def naming(field: str, **more):
    """Return OpenAI's form of naming a field."""
    return openai_error("Unsupported parameter.", param=field, code="unsupported_parameter", **more)


REFUSALS = {
    "openai": naming,
    "a message": lambda field: openai_error(f"property '{field}' is unsupported"),
    "google": lambda field: [
        {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": f'Unknown name "{field}": Cannot find field.'}}
    ],
    "pydantic": lambda field: {"detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs"}]},
    "mistral": lambda field: {
        "object": "error",
        "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", field]}]},
        "type": "invalid_request_error",
    },
    "nothing": lambda _field: {"error": "Bad Request"},
}  # fmt: skip


@for_each("way", REFUSALS)
@for_each("status", [400, 422])
async def test_metadata_that_is_refused_is_left_out_from_then_on(way: str, status: int) -> None:
    """https://github.com/openai/openai-agents-python/issues/443 (Gemini), livekit/agents #1276 (Groq),
    anomalyco/opencode #47496 (Grok, 422)
    """
    endpoint = refusing(
        lambda request: REFUSALS[way]("metadata") if request.metadata else None, GOOD_ANSWER, status
    )
    async with bench(script(endpoint)) as at:
        assert await at.think() == GOOD
        assert await at.think() == GOOD

    assert [bool(request.metadata) for request in at.model.requests] == [True, False, False]
    assert at.calls()[0]["outcome"] == "answered"
    assert at.calls()[0]["corrected"] == ["unnamed" if way == "nothing" else "metadata"]
    assert "metadata" in at.circuits()[0]["not_taken"]


@for_each(
    ("taken", "forms"),
    [
        ({"json_schema"}, ["json_schema", "json_schema"]),
        ({"json_object", "none"}, ["json_schema", "json_object", "json_object"]),
        ({"none"}, ["json_schema", "json_object", "none", "none"]),
    ],
)
@for_each(
    "refusal",
    [
        openai_error("This response_format type is unavailable now"),
        naming("response_format"),
        openai_error(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
        ),
        {"error": "json_schema is not supported"},
    ],
    ids=range(4),
)
async def test_an_object_is_asked_for_in_the_best_way_that_is_taken(taken, forms, refusal) -> None:
    """https://github.com/langchain-ai/langchain/issues/29282, BerriAI/litellm #7580, openai-agents-python #66"""
    endpoint = refusing(lambda request: None if form_of(request) in taken else refusal, GOOD_ANSWER)
    async with bench(script(endpoint)) as at:
        assert await at.think() == GOOD
        assert await at.think() == GOOD

    assert [form_of(request) for request in at.model.requests] == forms
    last = at.model.requests[-1]
    said = "".join(str(message["content"]) for message in last.messages)
    assert ('"dact"' in said) is ("json_schema" not in taken), (
        "the schema is in the prompt where it is nowhere else"
    )
    assert [message["role"] for message in last.messages] == ["system", "user"]


@for_each(
    ("field", "set_to"),
    [
        # https://platform.openai.com/docs/guides/reasoning (only the default is supported)
        ("temperature", 0.2),
        ("reasoning_effort", "low"),
    ],
)
async def test_a_setting_that_is_refused_is_left_to_the_model(field, set_to) -> None:
    endpoint = refusing(lambda request: naming(field) if field in request.body else None, FINE)
    async with bench(script(endpoint), replace(CONFIG, temperature=0.2, effort=Effort.LOW)) as at:
        assert await at.word() == "Fine."
        assert await at.word() == "Fine."

    assert [request.body.get(field) for request in at.model.requests] == [set_to, None, None]


@for_each(
    "refusal",
    [
        # https://community.openai.com (an unverified organization must not stream some models)
        openai_error("Your organization must be verified to stream this model.", param="stream"),
        # https://github.com/avante-corp/avante.nvim/issues/2347 (Mistral, 422)
        REFUSALS["pydantic"]("stream_options"),
    ],
    ids=range(2),
)  # fmt: skip
async def test_streaming_that_is_refused_is_done_without(refusal) -> None:
    field = "stream" if "error" in refusal else "stream_options"
    endpoint = refusing(lambda request: refusal if request.body.get(field) else None, FINE)
    async with bench(script(endpoint)) as at:
        heard = [await at.hear() for _ in range(2)]

    assert heard == ["Fine.", "Fine."]
    assert len(at.model.requests) == 3


async def test_the_limit_has_the_name_that_the_endpoint_knows() -> None:
    """https://learn.microsoft.com/azure/ai-services/openai/how-to/reasoning (`max_tokens` is not supported)"""
    refusal = openai_error(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        param="max_tokens", code="unsupported_parameter",
    )  # fmt: skip
    endpoint = refusing(lambda request: refusal if "max_tokens" in request.body else None, FINE)
    async with bench(script(endpoint)) as at:
        assert await at.word() == "Fine."
        assert await at.word() == "Fine."

    assert [request.body.get("max_completion_tokens") for request in at.model.requests] == [None, 64, 64]


@pytest.mark.parametrize("effort", [None, Effort.LOW])
async def test_tools_that_go_with_no_thought_are_asked_for_without_it(effort) -> None:
    """BerriAI/litellm #34569, danny-avila/LibreChat #14355, pipecat-ai/pipecat #4043 (gpt-5.4 and later)"""
    refusal = openai_error(
        "Function tools with reasoning_effort are not supported in /v1/chat/completions.",
        param="reasoning_effort",
    )

    def refuses(request: Request):
        return (
            refusal if request.body.get("tools") and request.body.get("reasoning_effort") != "none" else None
        )

    endpoint = refusing(refuses, ToolUse(calls=(("flight_search", {"day": "mon"}),)))
    async with bench(script(endpoint), replace(CONFIG, effort=effort)) as at:
        step = await at.use_tools()

    assert step.calls
    assert at.model.requests[-1].body["reasoning_effort"] == "none"


@pytest.mark.parametrize("choice", [ToolChoice.REQUIRED, "flight_search"])
async def test_a_tool_can_be_required_and_is_offered_where_that_is_refused(choice) -> None:
    """https://github.com/vllm-project/vllm (`tool_choice: required` needs a flag)"""
    refusal = openai_error('"required" tool choice requires --enable-auto-tool-choice', param="tool_choice")
    endpoint = refusing(
        lambda request: refusal if request.body.get("tool_choice") not in (None, "auto") else None,
        ToolUse(calls=(("flight_search", {"day": "mon"}),)),
    )
    async with bench(script(endpoint)) as at:
        offered = (SEARCH, replace(SEARCH, name="hotel_search"))
        await at.use_tools(*offered, tool_choice=choice)

    first, second = (request.body["tool_choice"] for request in at.model.requests)
    assert first == (
        "required"
        if choice is ToolChoice.REQUIRED
        else {"type": "function", "function": {"name": "flight_search"}}
    )
    assert second == "auto"


async def test_an_endpoint_that_takes_the_least_alone_is_asked_for_the_least() -> None:
    """An endpoint that refuses every unknown field, one at a time or without naming it."""
    known = {"model", "messages", "max_tokens", "stream", "tools", "tool_choice"}

    def refuses(request: Request):
        unknown = sorted(request.body.keys() - known)
        return openai_error(f"Unrecognized request argument supplied: {unknown[0]}") if unknown else None

    async with bench(script(refusing(refuses, GOOD_ANSWER)), replace(CONFIG, temperature=0.1)) as at:
        assert await at.think() == GOOD
        asked = len(at.model.requests)
        assert await at.think() == GOOD

    assert len(at.model.requests) == asked + 1


@for_each(
    ("reply", "error", "code"),
    [
        (sent(openai_error("You exceeded your current quota", code="insufficient_quota"), 429),
         ModelQuotaExceeded, "insufficient_quota"),
        (sent(openai_error("Insufficient Balance"), 402), ModelQuotaExceeded, "invalid_request_error"),
        (sent(openai_error("Incorrect API key", code="invalid_api_key"), 401), ModelNotAllowed, "invalid_api_key"),
        (sent(openai_error("The model `m` does not exist", code="model_not_found"), 404),
         ModelUnknown, "model_not_found"),
        (sent({"error": "model 'm' not found, try pulling it first"}, 404), ModelUnknown, None),
        (sent(openai_error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"), 400),
         ModelContextExceeded, "context_length_exceeded"),
        (sent({"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the "
         "available context size", "n_ctx": 4096}}, 400), ModelContextExceeded, "exceed_context_size_error"),
        (sent({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}, 400),
         ModelContextExceeded, None),
        (sent(openai_error("filtered", code="content_filter", innererror={"code": "RAI"}), 400),
         ModelFiltered, "content_filter"),
    ],
    ids=range(9),
)  # fmt: skip
async def test_endings_are_told_apart_and_cost_one_request(reply, error, code) -> None:
    """langchain-ai/langchainjs #1929, openai/codex #4837, google-gemini/gemini-cli #10925; DeepSeek (402);
    ggml-org/llama.cpp and vLLM (context); learn.microsoft.com (content filter)
    """
    async with bench(script(reply)) as at:
        with pytest.raises(error) as caught:
            await at.engineer.structured(
                "nlu_think", thinking() | {"history": []}, {"type": "object"}, calling()
            )

    assert type(caught.value) is error
    assert caught.value.final
    assert len(at.model.requests) == 1
    problem = at.calls()[0]["problem"]
    assert (problem["status"], problem["code"]) == (caught.value.said.status, code)
    assert problem["endpoint"] == at.model.base_url


async def test_an_empty_account_is_left_alone_for_long() -> None:
    reply = sent(openai_error("quota", code="insufficient_quota"), 429)
    async with bench(script(reply)) as at:
        for _ in range(3):
            with pytest.raises((ModelQuotaExceeded, Exception)):
                await at.think()

    (circuit,) = at.circuits()
    assert len(at.model.requests) == 1
    assert (circuit["problem"], circuit["retry_in_s"] > 60) == ("model_quota_exceeded", True)


async def test_the_fallback_answers_for_an_empty_account() -> None:
    playing = Script(
        rules=(
            Rule(model="small", replies=(sent(openai_error("q", code="insufficient_quota"), 429),)),
            Rule(model="spare", replies=(GOOD_ANSWER,)),
        )
    )
    async with bench(playing, replace(CONFIG, fallback=ModelChoice("spare"))) as at:
        assert await at.think() == GOOD

    assert len(at.model.requests) == 2


async def test_a_conversation_that_is_too_long_loses_its_older_half() -> None:
    refusal = openai_error("too long", code="context_length_exceeded")
    endpoint = refusing(lambda request: refusal if len(request.data["history"]) > 2 else None, GOOD_ANSWER)
    history = [{"role": "user", "text": str(number)} for number in range(4)]
    async with bench(script(endpoint)) as at:
        found = await at.engineer.structured(
            "nlu_think", thinking() | {"history": history}, {"type": "object"}, calling()
        )

    assert found == GOOD
    assert at.model.requests[-1].data["history"] == history[2:]
    assert at.calls()[0]["shortened"]


async def test_a_request_that_is_refused_for_another_reason_costs_one_more_once() -> None:
    """An unspecific refusal may concern a field. If the smallest request is refused as well, it does not."""
    async with bench(script(sent({"error": "Bad Request"}, 400))) as at:
        for _ in range(3):
            with pytest.raises(ModelRejected):
                await at.think()

    assert len(at.model.requests) == 4


async def test_what_is_opaque_goes_back_to_the_endpoint_that_wrote_it() -> None:
    """langchain-ai/langchain #37347 (Gemini 3's `thought_signature`), continuedev/continue #10193 (DeepSeek)"""
    signature = {"google": {"thought_signature": "s1"}}
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "They want a flight.",
        "tool_calls": [CALL | {"extra_content": signature}],
    }

    def reply(request: Request):
        answers = [one for one in request.messages if one["role"] == "assistant"]
        if not answers:
            return sent(completion(message))
        kept = answers[0]["tool_calls"][0].get("extra_content") == signature
        return (
            FINE
            if kept and answers[0].get("reasoning_content")
            else Fail(400, message="thought_signature is missing")
        )

    async with bench(script(Computed(reply))) as at, bench(script(FINE)) as other:
        step = await at.use_tools()
        transcript = (step.reply, tool_result(step.calls[0].id, {}))
        done = await at.use_tools(transcript=transcript)
        await other.use_tools(transcript=transcript)

    assert done.text == "Fine."
    elsewhere = other.model.requests[0].messages[2]
    assert "s1" not in str(elsewhere)
    assert "reasoning_content" not in elsewhere


async def test_time_outs_that_are_all_there_ever_was_are_named_as_such() -> None:
    """https://github.com/ollama/ollama/issues/8006: a model that is still loading."""
    impatient = replace(
        CONFIG, timeouts=replace(CONFIG.timeouts, request_s=0.5), retries=replace(CONFIG.retries, attempts=1)
    )
    async with bench(script(Hang(), GOOD_ANSWER, Hang()), impatient) as at:
        for _ in range(3):
            with suppress(ModelTimedOut):
                await at.think()

    told = [call["problem"] for call in at.calls()]
    assert told[0]["never_answered"] is True
    assert told[1] is None
    assert told[2]["never_answered"] is False
