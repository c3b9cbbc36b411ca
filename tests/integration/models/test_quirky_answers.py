"""CO-2: an understandable answer is used, regardless of the endpoint's format."""

import json
from dataclasses import replace

import pytest

from orchestrator.errors import ModelCutOff, ModelFailed, ModelFiltered, ModelOutputInvalid, ModelRefused
from orchestrator.models.retries import RetryPolicy
from orchestrator.ports.language_model import ChatRole
from parley.testing.scripted_model import Answer, Raw
from tests.cases import for_each
from tests.integration.models.bench import CONFIG, GOOD, bench, script
from tests.integration.models.quirks import CALL, chunk, completion, openai_error, sent, streamed

FUNCTION = CALL["function"]
ONE_TRY = replace(CONFIG, retries=RetryPolicy(attempts=1))


@for_each(
    "usage",
    [{}, None, {"total_tokens": 5}, {"prompt_tokens": None, "completion_tokens": None}, [], "12",
     {"prompt_tokens": "7", "completion_tokens": 3}, {"prompt_tokens": -1, "completion_tokens": 3},
     {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": "none"},
     {"prompt_tokens": 1.5, "completion_tokens": True}],
)  # fmt: skip
async def test_counts_that_are_no_numbers_are_not_counted_on(usage) -> None:
    """https://github.com/microsoft/autogen/issues/6352, https://github.com/567-labs/instructor/issues/358"""
    async with bench(script(sent(completion(usage=usage)))) as at:
        assert await at.think() == GOOD

    assert len(at.model.requests) == 1
    assert at.calls()[0]["tokens"] > 0


async def test_cached_and_reasoning_tokens_are_in_the_record_of_a_call() -> None:
    """https://platform.openai.com/docs/guides/prompt-caching"""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 80, "audio_tokens": None},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    async with bench(script(sent(completion(usage=usage)))) as at:
        await at.think()

    told = at.calls()[0]
    assert (told["tokens"], told["cached_tokens"], told["reasoning_tokens"]) == (150, 80, 30)


@for_each(
    "call",
    [
        CALL | {"function": FUNCTION | {"arguments": {"day": "friday"}}},
        {"id": "call_1", "function": FUNCTION},
        CALL | {"type": None},
        CALL | {"type": ""},
        CALL | {"id": None},
        CALL | {"id": ""},
        {"function": FUNCTION},
        CALL | {"index": 0, "function": FUNCTION | {"arguments": '{"day": "fri\nday"}'}},
        CALL | {"function": FUNCTION | {"arguments": 'Sure: {"day": "friday",}'}},
    ],
    ids=repr,
)
async def test_what_has_a_function_is_a_call(call) -> None:
    """https://github.com/BerriAI/litellm/issues/8313, https://github.com/mistralai/mistral-vibe/pull/552,
    https://github.com/acon96/home-llm/issues/349
    """
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    async with bench(script(sent(completion(message)), Answer(text="Done."))) as at:
        step = await at.use_tools()
        (made,) = step.calls
        assert made.arguments["day"].replace("\n", "") == "friday"
        result = replace(
            step.reply, role=ChatRole.TOOL, content="{}", tool_calls=(), tool_call_id=made.id, opaque=None
        )
        await at.use_tools(transcript=(step.reply, result))

    assistant, answered = at.model.requests[1].messages[-2:]
    assert made.id
    assert assistant["tool_calls"][0]["id"] == answered["tool_call_id"] == made.id
    assert assistant["content"] is None, "text content blocks must not be empty (anomalyco/opencode #17395)"


async def test_calls_that_share_an_identifier_get_their_own() -> None:
    """https://github.com/vllm-project/vllm/issues/17523 (identifiers that repeat)"""
    message = {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}
    async with bench(script(sent(completion(message)))) as at:
        step = await at.use_tools()

    assert len({call.id for call in step.calls}) == 2


async def test_the_older_form_of_a_call_is_one_too() -> None:
    """https://platform.openai.com/docs/api-reference/chat/object (`function_call`, deprecated)"""
    message = {"role": "assistant", "content": None, "function_call": FUNCTION}
    async with bench(script(sent(completion(message)))) as at:
        step = await at.use_tools()

    assert step.calls[0].arguments == {"day": "friday"}


@for_each("arguments", ['["friday"]', 7, [1], '"friday"'])
async def test_arguments_that_are_no_object_are_asked_for_again(arguments) -> None:
    """https://github.com/agno-agi/agno/pull/8999"""
    bad = {"role": "assistant", "tool_calls": [CALL | {"function": FUNCTION | {"arguments": arguments}}]}
    good = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    async with bench(script(sent(completion(bad)), sent(completion(good)))) as at:
        step = await at.use_tools()

    assert step.calls[0].arguments == {"day": "friday"}
    assert at.calls()[0]["repaired"]


@for_each(
    "content",
    [
        f"<think>\n\n</think>\n\n{json.dumps(GOOD)}",
        f'<think>maybe {{"flows": []}}?</think>{json.dumps(GOOD)}',
        f'So they want {{"flows"}}. </think>{json.dumps(GOOD)}',
        f"<reasoning>Hm.</reasoning>\n```json\n{json.dumps(GOOD)}\n```",
        f"[THINK]Hm {{[/THINK]{json.dumps(GOOD)}",
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm {"}]},
         {"type": "text", "text": json.dumps(GOOD)}],
        [{"type": "text", "text": json.dumps(GOOD)[:9]}, {"type": "text", "text": json.dumps(GOOD)[9:]}],
        [json.dumps(GOOD)],
        GOOD,
        json.dumps(GOOD).replace("book_flight", "book_flight\n\t"),
        f"Here you are:\n{json.dumps(GOOD)}\nAnything else?",
        json.dumps(GOOD).replace("}]", ",}],"),
        "\ufeff" + json.dumps(GOOD),
    ],
)  # fmt: skip
async def test_an_object_is_found_where_the_endpoint_puts_it(content) -> None:
    """Thoughts: https://github.com/sigoden/aichat/issues/1290 and /1528, xorbitsai/inference #3647; parts:
    https://docs.mistral.ai/capabilities/reasoning; an object: https://github.com/ollama/ollama/issues/8000 (kin);
    raw line breaks: https://github.com/mem0ai/mem0/pull/4420
    """
    async with bench(script(sent(completion({"role": "assistant", "content": content})))) as at:
        found = await at.think()

    assert found["flows"][0]["dact"].strip() == "book_flight"
    assert len(at.model.requests) == 1


@for_each(
    ("said", "text"),
    [
        ("<think>\n\n</think>\n\nBooked.", "Booked."),
        ("So they want help. </think>\n\nBooked.", "Booked."),
        ("<THINK>a</THINK>Booked.", "Booked."),
        ("Booked.", "Booked."),
        ("It is 3 < 4, and <b>bold</b>.", "It is 3 < 4, and <b>bold</b>."),
    ],
)
async def test_users_never_read_a_thought(said: str, text: str) -> None:
    """https://github.com/sigoden/aichat/issues/1290, langgenius/dify #19051"""
    async with bench(script(Answer(text=said))) as at:
        assert await at.word() == text


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_nor_while_it_is_streamed(size: int) -> None:
    said = "<think>They want <b>help</b>.\n</think>\n\nBooked, a < b."
    pieces = [chunk({"content": said[at : at + size]}) for at in range(0, len(said), size)]
    async with bench(script(streamed(*pieces, chunk({}, "stop")))) as at:
        heard = await at.hear()

    assert heard.strip() == "Booked, a < b."


async def test_a_streamed_thought_without_a_beginning_is_no_answer() -> None:
    """https://github.com/sigoden/aichat/issues/1528: templates that open the thought in the prompt."""
    pieces = [chunk({"content": text}) for text in ("So they", " want help.", " </thi", "nk>", " Booked.")]
    async with bench(script(streamed(*pieces, chunk({}, "stop")))) as at:
        with pytest.raises(ModelFailed):
            await at.hear()


@for_each(
    "between",
    [
        chunk(None),
        {"id": "x", "choices": [{"index": 0, "finish_reason": None}]},
        {"choices": []},
        {"choices": None},
        {},
        {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{}]},
        chunk({"content": None, "role": None}),
        chunk({"content": ""}),
        chunk({"content": [{"type": "text", "text": ""}]}),
        chunk({"role": "assistant"}, None, usage={}),
    ],
    ids=repr,
)
async def test_a_chunk_that_says_nothing_is_skipped(between) -> None:
    """https://github.com/pydantic/pydantic-ai/issues/797, microsoft/autogen #6465, BerriAI/litellm #3811"""
    chunks = between, chunk({"content": "Well"}), between, chunk({"content": "."}), chunk({}, "stop")
    async with bench(script(streamed(*chunks))) as at:
        heard = await at.hear()

    assert heard == "Well."
    assert len(at.model.requests) == 1


def piece(index, call_id=None, name=None, arguments=None, **more):
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": call_id, "type": "function", "function": function} | more


@for_each(
    "pieces",
    [
        [piece(0, "a", "flight_search", '{"day": "mon"}'), piece(0, "b", "flight_search", '{"day": "tue"}')],
        [piece(None, "a", "flight_search", '{"day": "mon"}'), piece(None, "b", "flight_search", '{"day": "tue"}')],
        [piece(0, None, "flight_search", '{"day": "mon"}'), piece(0, None, "flight_search", '{"day": "tue"}')],
        [piece(0, "a", "flight_search", '{"day":'), piece(0, "a", None, '"mon"}'),
         piece(0, "b", "flight_search", '{"day":'), piece(0, "b", None, '"tue"}')],
        [piece(0, "a", "flight_search", ""), piece(1, "b", "flight_search", ""),
         piece(0, None, None, '{"day": "mon"}'), piece(1, None, None, '{"day": "tue"}')],
        [piece(0, "a", "flight_search", {"day": "mon"}), piece(1, "b", "flight_search", {"day": "tue"}, type=None)],
        [piece(0, "a", "flight_search", '{"day":'), piece(0, "", "", '"mon"}'),
         piece(1, "b", "flight_search", '{"day": "tue"}')],
        [piece(5, "a", "flight_search", '{"day": "mon"}'), piece(2, "b", "flight_search", '{"day": "tue"}')],
    ],
    ids=range(8),
)  # fmt: skip
async def test_streamed_calls_are_told_apart(pieces) -> None:
    """https://github.com/NousResearch/hermes-agent/issues/62940, mcowger/plexus #691, ai-dynamo/dynamo #4723"""
    chunks = [chunk({"tool_calls": [one]}) for one in pieces]
    told: list[str] = []

    async def publish(name: str, arguments: str) -> None:
        told.append(f"{name}{arguments}")

    async with bench(script(streamed(*chunks, chunk({}, "tool_calls")))) as at:
        step = await at.use_tools(publish=publish)

    assert [call.arguments for call in step.calls] == [{"day": "mon"}, {"day": "tue"}]
    assert len({call.id for call in step.calls}) == 2
    assert len(at.model.requests) == 1
    assert told


async def test_a_last_chunk_may_carry_a_whole_message() -> None:
    """https://github.com/vllm-project/vllm/issues/9693 (kin): `message` where `delta` is due."""
    whole = {"index": 0, "message": {"role": "assistant", "content": "Well."}, "finish_reason": "stop"}
    async with bench(script(streamed({"id": "x", "choices": [whole]}))) as at:
        heard = await at.hear()

    assert heard == "Well."


async def test_a_stream_that_breaks_before_it_says_anything_is_asked_again() -> None:
    """https://github.com/anomalyco/opencode/issues (similar): an error event after the role."""
    broken = streamed(chunk({"role": "assistant", "content": ""}), openai_error("overloaded"), done=False)
    async with bench(script(broken, Answer(text="Well."))) as at:
        heard = await at.hear()

    assert heard == "Well."
    assert len(at.model.requests) == 2


async def test_an_endpoint_that_does_not_stream_is_asked_for_the_whole() -> None:
    """Servers that ignore `stream` answer with plain JSON, which is remembered."""
    whole = sent(completion({"role": "assistant", "content": "Well."}))
    async with bench(script(whole)) as at:
        heard = [await at.hear() for _ in range(2)]

    assert heard == ["Well.", "Well."]
    assert [bool(request.body.get("stream")) for request in at.model.requests] == [True, False, False]


@for_each(
    "body",
    [
        "data: {broken\n\n",
        'data: {"choices": [{"delta": {"content": "W"}}]}\n\ndata: [1, 2\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"content": "\xc3"}}]}\n\n',
        "data: 7\n\n",
        'data: {"choices": 7}\n\ndata: {"choices": {"delta": 1}}\n\ndata: null\n\n',
        "event: error\ndata: nothing\n\n",
        "",
    ],
)
async def test_a_stream_that_cannot_be_read_is_a_failure_with_a_name(body) -> None:
    async with bench(script(Raw(body, "text/event-stream")), ONE_TRY) as at:
        with pytest.raises((ModelFailed, ModelOutputInvalid)):
            await at.hear()


@for_each(
    "body",
    [
        b'{"choices": [{"message": {"content": "\xc3"}}]}',
        '{"choices": [{"message": {"content": "x"}}]',
        '{"choices": {"0": {}}}',
        '{"choices": [null]}',
        '{"choices": [{"message": {"role": 7, "content": 7}}]}',
        '{"choices": []}',
        json.dumps({"error": {"message": "upstream", "code": 502}}),
        json.dumps({"error": "no model loaded"}),
        "",
        "null",
        '"hi"',
        '{"choices": [{}]}',
        "<html>Hotel Wi-Fi</html>",
        "[" * 100_000,
        '"' + "x" * 20_000_000 + '"',
    ],
    ids=range(15),
)
async def test_a_body_that_cannot_be_read_is_a_failure_with_a_name(body) -> None:
    """Among them https://openrouter.ai/docs/api-reference/errors (errors with status 200), and twenty megabytes."""
    async with bench(script(Raw(body)), ONE_TRY) as at:
        with pytest.raises((ModelFailed, ModelOutputInvalid)):
            await at.word()


@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_of_megabytes_is_dropped(*, streams: bool) -> None:
    """At most eight megabytes are read, although the answer is well formed."""
    much = "x" * 9_000_000
    whole = streamed(chunk({"role": "assistant"}), chunk({"content": much}), chunk({}, "stop"))
    reply = whole if streams else sent(completion({"role": "assistant", "content": much}))
    async with bench(script(reply), ONE_TRY) as at:
        with pytest.raises(ModelFailed):
            await (at.hear() if streams else at.word())


@for_each("finish_reason", [None, "", "eos", "guardrail_intervened", 7, "tool_use"])
async def test_an_unknown_ending_is_an_ending(finish_reason) -> None:
    """https://github.com/ggml-org/llama.cpp (`eos`), https://docs.aws.amazon.com/bedrock (`guardrail_intervened`)"""
    body = completion()
    body["choices"][0]["finish_reason"] = finish_reason
    async with bench(script(sent(body))) as at:
        assert await at.think() == GOOD


@pytest.mark.parametrize("streams", [False, True])
async def test_a_refusal_is_final_and_has_its_own_name(*, streams: bool) -> None:
    """https://platform.openai.com/docs/guides/structured-outputs (`refusal`)"""
    refusal = "I can't help with that."
    whole = sent(completion({"role": "assistant", "content": None, "refusal": refusal}))
    reply = streamed(chunk({"refusal": refusal}), chunk({}, "stop")) if streams else whole
    async with bench(script(reply)) as at:
        with pytest.raises(ModelRefused) as caught:
            await (at.hear() if streams else at.word())

    assert (len(at.model.requests), caught.value.final) == (1, True)
    assert at.calls()[0]["outcome"] == "model_refused"


async def test_a_filtered_answer_is_final() -> None:
    """https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter"""
    body = completion({"role": "assistant", "content": None})
    body["choices"][0]["finish_reason"] = "content_filter"
    async with bench(script(sent(body))) as at:
        with pytest.raises(ModelFiltered):
            await at.word()

    assert len(at.model.requests) == 1


async def test_a_limit_that_was_spent_on_thinking_is_named_and_grows_by_it() -> None:
    """https://github.com/covan-ai/covan/pull/112, BerriAI/litellm-docs #559"""
    details = {"completion_tokens_details": {"reasoning_tokens": 64}}
    usage = {"prompt_tokens": 9, "completion_tokens": 64, "total_tokens": 73} | details
    body = completion({"role": "assistant", "content": ""}, usage=usage)
    body["choices"][0]["finish_reason"] = "length"
    async with bench(script(sent(body))) as at:
        with pytest.raises(ModelCutOff, match="64 tokens were spent on thinking") as caught:
            await at.think()

    assert [request.body["max_tokens"] for request in at.model.requests] == [64, 256]
    assert caught.value.final
    assert at.calls()[0]["reasoning_tokens"] == 128
