"""CO-2: further forms of answers and refusals of endpoints, each with its source."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from orchestrator.errors import ModelQuotaExceeded, ModelRejected
from orchestrator.models.calling import Pacing
from orchestrator.ports.language_model import ToolChoice
from parley.testing.scripted_model import Raw, Request, ToolUse
from tests.cases import for_each
from tests.integration.models.bench import CONFIG, GOOD, SEARCH, Waits, bench, script
from tests.integration.models.quirks import (
    CALL,
    FINE,
    GOOD_ANSWER,
    chunk,
    completion,
    form_of,
    openai_error,
    refusing,
    sent,
    streamed,
)
from tests.integration.models.test_quirky_answers import piece

DAY = '{"day": "mon"}'


def called(name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [CALL | {"function": function}]}


def written(call: Any) -> str:
    """Return a call as models write it."""
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


@for_each(
    "message",
    [
        # https://github.com/sgl-project/sglang/pull/7863, quarkiverse/quarkus-langchain4j #2642
        called("flight_search", json.dumps(DAY)),
        # https://github.com/google-gemini/cookbook/issues/1374
        called("default_api.flight_search", DAY),
        called("functions.flight_search", DAY),
        # https://github.com/NousResearch/Hermes-Function-Calling: a server without a parser for its format
        {"role": "assistant", "content": written({"name": "flight_search", "arguments": {"day": "mon"}})},
        {"role": "assistant", "content": f"<think>Hm.</think>{written({'name': 'flight_search', 'arguments': DAY})}"},
        # https://github.com/QuantumNous/new-api/pull/652: text in addition to a call
        called("flight_search", DAY) | {"content": "Let me look."},
    ],
    ids=range(6),
)  # fmt: skip
async def test_a_call_is_read_however_it_is_written(message: dict[str, Any]) -> None:
    async with bench(script(sent(completion(message)), FINE)) as at:
        step = await at.use_tools()

    assert [(call.name, call.arguments) for call in step.calls] == [("flight_search", {"day": "mon"})]
    assert [call.name for call in step.reply.tool_calls] == ["flight_search"], "an OpenAI name has no dot"
    assert len(at.model.requests) == 1


async def test_a_list_within_arguments_may_be_written_as_text() -> None:
    """https://github.com/MoonshotAI/kimi-cli/pull/2513"""
    listed = {"type": "object", "properties": {"days": {"type": "array", "items": {"type": "string"}}}}
    tool = type(SEARCH)("flight_search", "Find flights.", listed)
    async with bench(script(sent(completion(called("flight_search", '{"days": "[\\"mon\\"]"}'))))) as at:
        step = await at.use_tools(tool)

    assert step.calls[0].arguments == {"days": ["mon"]}


@for_each(
    "pieces",
    [
        # https://github.com/NousResearch/hermes-agent/pull/11984: the name in every piece
        [piece(0, "a", "flight_search", '{"day":'), piece(0, "a", "flight_search", ' "mon"}'),
         piece(0, "a", "flight_search", "")],
        [piece(0, None, "flight_search", DAY), piece(0, None, "flight_search", "")],
        # https://github.com/BerriAI/litellm/issues/12513: the word null for no name
        [piece(0, "a", "flight_search", '{"day": "m'), piece(0, "", "null", 'on"}')],
        # https://github.com/vercel/ai/pull/16507, jjang-ai/vmlx #244: the name after the first piece
        [piece(0, "a", "", ""), piece(0, "a", "flight_search", DAY)],
        [piece(0, "a", None, '{"day"'), piece(0, None, "flight_search", ': "mon"}')],
        # https://github.com/huggingface/tau/pull/715, lazy-hq/aisdk #121: an empty name later
        [piece(0, "a", "flight_search", '{"day":'), piece(0, "a", "", ' "mon"}')],
        # https://github.com/The-Vibe-Company/quivr/pull/3514: lists without a call
        [piece(0, "a", "flight_search", DAY), {}],
    ],
    ids=range(7),
)  # fmt: skip
async def test_a_streamed_call_is_one_call(pieces: list[dict[str, Any]]) -> None:
    async def publish(name: str, arguments: str) -> None:
        assert name == "flight_search"

    chunks = [chunk({"tool_calls": [one]}) for one in pieces]
    async with bench(script(streamed(*chunks, chunk({"tool_calls": []}), chunk({}, "stop")))) as at:
        step = await at.use_tools(publish=publish)

    assert [call.arguments for call in step.calls] == [{"day": "mon"}]
    assert len(at.model.requests) == 1


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_an_object_may_be_where_thoughts_belong(name: str) -> None:
    """https://github.com/ai-dynamo/dynamo/issues/11203, vllm-project/vllm #48863 and #50948"""
    message = {"role": "assistant", "content": None, name: json.dumps(GOOD)}
    async with bench(script(sent(completion(message)))) as at:
        assert await at.think() == GOOD


async def test_a_thought_is_no_text() -> None:
    """https://github.com/NousResearch/hermes-agent/issues/46131: an answer with thoughts only is requested
    again.
    """
    thought = {"role": "assistant", "content": "", "reasoning_content": "They want a flight."}
    async with bench(script(sent(completion(thought)), FINE)) as at:
        assert await at.word() == "Fine."


async def test_counts_that_are_repeated_count_once() -> None:
    """https://github.com/InternLM/lmdeploy/issues/3832, camel-ai/camel #4217, ogx-ai/ogx #5122"""
    counts = [
        {"prompt_tokens": 100, "completion_tokens": said, "total_tokens": 100 + said} for said in (1, 2)
    ]
    pieces = [
        chunk({"content": "Well"}, usage=counts[0]),
        chunk({"content": "."}, usage=counts[1]),
        chunk({}, "stop"),
        {"id": "x", "choices": [], "usage": counts[1]},
    ]
    async with bench(script(streamed(*pieces))) as at:
        await at.hear()

    assert at.calls()[0]["tokens"] == 102


async def test_comments_and_odd_lines_of_a_stream_say_nothing() -> None:
    """https://openrouter.ai/docs/api-reference/streaming (`: OPENROUTER PROCESSING`); carriage returns, no blank
    behind the colon, names of events
    """
    one, two = (json.dumps(chunk({"content": text})) for text in ("señor", " à"))
    body = f": OPENROUTER PROCESSING\r\n\r\nevent: message\r\ndata:{one}\r\n\r\n: ping\n\n"
    body += f"data: {two}\n\ndata: [DONE]\n\n"
    async with bench(script(Raw(body, "text/event-stream"))) as at:
        heard = await at.hear()

    assert heard == "señor à"


@for_each(
    "error",
    [
        # https://github.com/apache/rocketmq-dashboard/issues/2178, maximhq/bifrost #5040
        {"error": {"message": "quota exceeded", "code": "insufficient_quota"}},
        # https://openrouter.ai/docs/api-reference/errors: HTTP status as a code
        {"error": {"message": "Insufficient credits", "code": 402}, "choices": []},
    ],
    ids=range(2),
)
@for_each("streams", [False, True])
async def test_an_error_within_an_answer_is_told_apart(*, error: dict[str, Any], streams: bool) -> None:
    async with bench(script(streamed(error, done=False) if streams else sent(error))) as at:
        with pytest.raises(ModelQuotaExceeded):
            await (at.hear() if streams else at.word())

    assert len(at.model.requests) == 1


@for_each(
    "headers",
    [
        # https://github.com/openai/openai-python/issues/957 (Azure)
        {"retry-after-ms": "750", "retry-after": "1"},
        {"Retry-After": "0.75"},
        # https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
        {"Retry-After": "date"},
    ],
    ids=range(3),
)
@for_each("status", [429, 503, 529])
async def test_an_endpoint_says_when_to_come_back(headers: dict[str, str], status: int) -> None:
    """Also https://github.com/microsoft/kernel-memory/pull/795 (503)."""
    waits = Waits()
    least_s, most_s = 0.7, 2.1
    if headers.get("Retry-After") == "date":
        # The date has whole seconds, and the call itself takes time, so the wait is up to two seconds shorter.
        least_s, most_s = 2.0, 4.1
        at_second = format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)
        headers = {"Retry-After": at_second}
    busy = Raw(json.dumps(openai_error("busy")), status=status, headers=headers)
    patient = replace(CONFIG, retries=replace(CONFIG.retries, longest_wait_s=5))
    async with bench(script(busy, FINE), patient, pacing=Pacing(sleep=waits)) as at:
        assert await at.word() == "Fine."

    assert len(waits.seconds) == 1
    assert least_s <= waits.seconds[0] <= most_s


def system_of(request: Request) -> bool:
    return any(message["role"] == "system" for message in request.messages)


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        # https://github.com/vllm-project/vllm/pull/2964, huggingface/chat-ui #1386
        (400, {"object": "error", "message": "System role not supported", "code": 400}),
        # https://github.com/abetlen/llama-cpp-python/issues/1580
        (500, {"error": {"code": 500, "message": "Jinja Exception: System role not supported"}}),
    ],
)
async def test_a_template_without_a_system_role_gets_one_message(
    status: int, refusal: dict[str, Any]
) -> None:
    endpoint = refusing(lambda request: refusal if system_of(request) else None, GOOD_ANSWER, status)
    async with bench(script(endpoint)) as at:
        assert await at.think() == GOOD
        assert await at.think() == GOOD

    assert [system_of(request) for request in at.model.requests] == [True, False, False]
    [message] = at.model.requests[-1].messages
    assert message["content"].startswith("Classify the user's last message")
    assert '"utterance":"Book a flight to Oslo"' in message["content"]


CANNOT_USE = [
    # https://github.com/ikawrakow/ik_llama.cpp/issues/778
    (500, 'response_format type must be one of "text" or "json_object", but got: json_schema'),
    # https://github.com/ggml-org/llama.cpp/issues/23463
    (500, "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]"),
    # https://github.com/browseros-ai/BrowserOS/issues/255 (llama.cpp)
    (400, "JSON schema conversion failed:\nUnrecognized schema: {}"),
]


@pytest.mark.parametrize(("status", "words"), CANNOT_USE, ids=range(3))
async def test_schemas_that_a_server_cannot_use_are_left_out(status: int, words: str) -> None:
    refusal = {"error": {"code": status, "message": words, "type": "server_error"}}
    endpoint = refusing(
        lambda request: refusal if form_of(request) == "json_schema" else None, GOOD_ANSWER, status
    )
    async with bench(script(endpoint)) as at:
        assert await at.think() == GOOD
        assert await at.think() == GOOD

    assert [form_of(request) for request in at.model.requests].count("json_schema") == 1


async def test_a_server_that_takes_schemas_or_nothing_is_asked_in_the_prompt() -> None:
    """https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189, and a schema that the server can't use."""
    refusals = {
        "json_schema": {"error": "response_format: schema is too complex"},
        "json_object": {"error": "'response_format.type' must be 'json_schema' or 'text'"},
    }
    async with bench(script(refusing(lambda request: refusals.get(form_of(request)), GOOD_ANSWER))) as at:
        assert await at.think() == GOOD

    assert [form_of(request) for request in at.model.requests] == ["json_schema", "json_object", "none"]


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens (1024) exceeds model's maximum output tokens (512)",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    ],
)
async def test_a_limit_that_is_too_high_is_left_to_the_model(words: str) -> None:
    """https://github.com/DaviRain-Su/hyper-grok-build/issues/44, S-Trespassing/claw-in-chrome #11"""
    limits = ("max_tokens", "max_completion_tokens")
    endpoint = refusing(
        lambda request: openai_error(words) if any(name in request.body for name in limits) else None, FINE
    )
    async with bench(script(endpoint)) as at:
        assert await at.word() == "Fine."
        asked = len(at.model.requests)
        assert await at.word() == "Fine."

    assert len(at.model.requests) == asked + 1


async def test_a_model_without_tools_is_asked_for_none_twice() -> None:
    """https://github.com/ollama/ollama/issues/6027, pydantic/pydantic-ai #703: the failure is final."""
    refusal = openai_error("registry.ollama.ai/library/gemma3:4b does not support tools")
    endpoint = refusing(lambda request: refusal if request.body.get("tools") else None, FINE)
    async with bench(script(endpoint)) as at:
        for _ in range(3):
            with pytest.raises(ModelRejected) as caught:
                await at.use_tools()
        assert await at.word() == "Fine."

    assert caught.value.final
    assert len([request for request in at.model.requests if request.body.get("tools")]) == 4


async def test_a_refusal_after_an_earlier_success_is_corrected_too() -> None:
    """An unspecific refusal: a new form is dropped at once, an accepted form on the second refusal."""

    def refuses(request: Request):
        return {"error": "Bad Request"} if request.body.get("tool_choice") == "required" else None

    endpoint = refusing(refuses, ToolUse(calls=(("flight_search", {"day": "mon"}),)))
    config = replace(CONFIG, retries=replace(CONFIG.retries, attempts=1))
    async with bench(script(GOOD_ANSWER, endpoint), config) as at:
        assert await at.think() == GOOD
        for _ in range(2):
            step = await at.use_tools(tool_choice=ToolChoice.REQUIRED)
            assert step.calls

    assert [request.body.get("tool_choice") for request in at.model.requests] == [
        None,
        "required",
        "auto",
        "auto",
    ]


async def test_one_refusal_of_a_form_that_was_accepted_does_not_change_it() -> None:
    refusal = sent({"error": "Bad Request"}, 400)
    replies = (GOOD_ANSWER, refusal, GOOD_ANSWER, GOOD_ANSWER, refusal, GOOD_ANSWER, refusal, GOOD_ANSWER)
    async with bench(script(*replies, GOOD_ANSWER)) as at:
        for _ in range(6):
            assert await at.think() == GOOD

    asked = [form_of(request) for request in at.model.requests]
    assert asked == [
        "json_schema",
        "json_schema",
        "none",
        "json_schema",
        "json_schema",
        "none",
        "json_schema",
        "none",
        "none",
    ]
