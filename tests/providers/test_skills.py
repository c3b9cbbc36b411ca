"""A skill through each strict provider: tools, a stream, returned thoughts, and final endings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parley.simulator import Simulator
from parley.testing.scripted_model import Answer, Computed, Request, Rule, Script, ToolUse
from tests.cases import for_each
from tests.providers.dialect import Reply
from tests.providers.dialects import DIALECTS
from tests.providers.server import Failing, Verbatim, Way
from tests.providers.test_evaluations import asked
from tests.trained import trained
from tests.transcripts.test_tokens_of_a_turn import ADVICE, SEARCH, TRIP

# Some provider clients leave the closing of connections to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

TOLD = "Take DY961 on that day: it is the cheapest of the flights that I found."
ADVISED = ToolUse(
    calls=(
        (
            "finish",
            {"outcome": "success", "data": {"advice": TOLD, "flight_number": "DY961", "day": "2026-11-27"}},
        ),
    )
)
SYSTEM2: dict[str, Any] = {
    "nlu": {"mode": "system2"},
    "models": {"timeout_s": 300, "stream_timeout_s": 300, "patience_s": 600},
    "session": {"deadline_s": 600},
    "resilience": {"backoff_base_s": 0, "skill_overhead_ms": 600_000, "tool_timeout_ms": 300_000},
}


def step(request: Request) -> ToolUse:
    """Search, and give advice after the results."""
    return ADVISED if any(one["role"] == "tool" for one in request.messages) else SEARCH


SCRIPT = Script(
    rules=(
        Rule(prompt="nlu_think", replies=(Answer(json=ADVICE),)),
        Rule(prompt="pex_skill", replies=(Computed(step),)),
    )
)


async def advise(name: str, *ways: Way) -> tuple[Any, Any]:
    loaded, system1 = trained("travel")
    async with asked(name, SCRIPT, *ways) as (provider, pool):
        simulator = Simulator.of(loaded, sections=SYSTEM2, models=pool, system1=system1)
        return await simulator.converse().say(TRIP), provider


@for_each("name", DIALECTS)
async def test_a_skill_searches_and_advises(name: str) -> None:
    """PX-5, CO-2: two steps with tools; data of the first call are sent back with its result."""
    turn, provider = await advise(name)

    assert turn["completed"] == ["trip_advice"]
    assert TOLD in turn["reply"]
    assert [one["tool_id"] for one in turn["tools"]] == ["flight_search"]
    assert not any("prompt_cache_options" in body for body in provider.bodies)
    # Reasoning with tools is refused once, and remembered; nothing else is refused.
    assert all("reasoning_effort" in one for one in provider.refused)
    assert len(provider.refused) <= (1 if name == "openai-chat-thinking" else 0)


async def test_openai_is_asked_statelessly_and_gets_its_reasoning_back() -> None:
    """CO-2: OpenAI is called with the Responses API without storage; reasoning is sent back unchanged."""
    _, provider = await advise("openai-responses")

    for body in provider.bodies:
        assert body["store"] is False
        assert "metadata" not in body
        assert "reasoning.encrypted_content" in body["include"]
    sealed = [item for item in provider.bodies[-1]["input"] if item.get("type") == "reasoning"]
    assert sealed[0]["encrypted_content"].startswith("sealed-")
    assert provider.bodies[0]["text"]["format"]["name"] == "nlu_think"


FINAL: list[tuple[str, Way]] = [
    ("openai-chat", Reply(refusal="I can't help with that.")),
    ("openai-chat", Reply(reason="content_filter")),
    ("openai-responses", Reply(refusal="I can't help with that.")),
    ("openai-responses", Reply(reason="content_filter")),
    ("azure", Failing(400, "The response was filtered.", "content_filter")),
    ("anthropic", Reply(refusal="I can't help with that.")),
    ("gemini", Reply(refusal="blocked")),
    ("gemini", Reply(reason="PROHIBITED_CONTENT")),
]


@for_each(("name", "way"), FINAL)
async def test_an_ending_that_is_final_leaves_the_message_to_system_1(name: str, way: Way) -> None:
    """CO-2, NL-2: only one request, and the user gets no apology."""
    turn, provider = await advise(name, way)

    assert provider.asked.count("nlu_think") == 1
    assert turn["flags"]["degraded"]
    assert turn["completed"] == ["trip_advice"]
    assert "went wrong" not in turn["reply"]


async def test_an_account_that_is_empty_is_asked_once() -> None:
    """CO-2: further requests can't help, so the skill is not tried either, and the user is told."""
    turn, provider = await advise(
        "openai-chat", Failing(429, "You exceeded your quota.", "insufficient_quota")
    )

    assert provider.asked == ["nlu_think"]
    assert turn["flags"]["model_problem"] == "model_quota_exceeded"
    assert "needs a language model" in turn["reply"]


NOTHING: list[tuple[str, Way]] = [
    # https://github.com/google-gemini/gemini-cli/issues/12674, pydantic/pydantic-ai #3300
    ("gemini", Reply(reason="MALFORMED_FUNCTION_CALL")),
    # https://github.com/AstrBotDevs/AstrBot/pull/6735
    ("gemini", Reply()),
    # https://github.com/vllm-project/vllm/issues/45736
    ("openai-chat", Reply()),
    # https://docs.anthropic.com/en/api/errors
    ("anthropic", Failing(529, "Overloaded", "overloaded_error")),
]


@for_each(("name", "way"), NOTHING)
async def test_an_answer_that_came_to_nothing_is_asked_for_again(name: str, way: Way) -> None:
    """CO-2."""
    turn, provider = await advise(name, way)

    assert provider.asked.count("nlu_think") == 2
    assert turn["completed"] == ["trip_advice"]
    assert not turn["flags"].get("degraded")


async def test_a_stream_that_is_overloaded_before_it_says_anything_is_asked_for_again() -> None:
    """https://github.com/byte5ai/omadia/pull/122, tailcallhq/forgecode #2595: 200, and then an error."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    overloaded = Verbatim(f"event: error\ndata: {json.dumps(error)}\n\n", "text/event-stream")
    turn, provider = await advise("anthropic", Reply(json.dumps(ADVICE)), overloaded)

    assert provider.asked.count("pex_skill") == 3
    assert turn["completed"] == ["trip_advice"]


CUT: list[tuple[str, Way]] = [
    ("openai-chat", Reply('{"kind": "ta', reason="length")),
    ("openai-responses", Reply('{"kind": "ta', reason="max_output_tokens")),
    ("anthropic", Reply('{"kind": "ta', reason="max_tokens")),
    ("gemini", Reply('{"kind": "ta', reason="MAX_TOKENS")),
    ("mistral", Reply('{"kind": "ta', reason="length")),
    ("groq", Reply('{"kind": "ta', reason="length")),
]


@for_each(("name", "way"), CUT)
async def test_an_answer_that_is_cut_off_is_asked_for_with_more_tokens(name: str, way: Way) -> None:
    """PX-9, CO-2."""
    turn, provider = await advise(name, way)

    assert provider.asked.count("nlu_think") == 2
    assert turn["completed"] == ["trip_advice"]
    assert not turn["flags"].get("degraded")
