"""A real llama.cpp server with a model of 135 million parameters: accepted requests, harmless nonsense."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

import pytest

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.models.breaker import BreakerPolicy
from orchestrator.telemetry import Signal, SignalType
from parley.simulator import Simulator
from tests.providers.llama_server import MISSING, is_installed, serving
from tests.trained import trained

pytestmark = pytest.mark.skipif(not is_installed(), reason=MISSING)
YES = "yes"
AGREES = frozenset({YES, "book it"})
"""Messages in `SAID` that are a plain yes to an offered booking (PX-18)."""
SAID = (
    "hello there",
    "who are you?",
    "is SK3444 on time?",
    "I want to fly from Oslo to Madrid tomorrow",
    "the second one",
    "book it",
    YES,
    "it was great, thanks",
    "no, wait",
    "show me my bookings",
    "cancel my booking",
    "maybe",
    "what would you recommend for a weekend somewhere warm?",
    "is it allowed to bring my cat on board?",
    "on Friday, two people, business class",
    "change it to Sunday",
    "never mind",
    "could you get me something to Madrid, maybe around noon?",
    "I prefer window seats",
    "how much is a bag?",
    "my colleague already booked, didn't she?",
    "add two bags",
    "don't book anything",
    "advise me on a trip from Oslo to Madrid on Friday",
    "asdf qwer zxcv",
)
"""User messages, meaningful and meaningless, in any order."""
SECTIONS: dict[str, Any] = {
    "nlu": {"mode": "system2"},
    "models": {"timeout_s": 60, "stream_timeout_s": 60, "patience_s": 60},
    "session": {"deadline_s": 120},
}


@dataclass
class Seen:
    waits: list[float] = field(default_factory=list)
    deeds: int = 0
    unagreed: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


@asynccontextmanager
async def simulated(url: str, seen: Seen) -> AsyncIterator[Simulator]:
    def record(signal: Signal) -> None:
        if signal.type is SignalType.MODEL_CALL:
            outcome = str(signal.payload["outcome"])
            seen.outcomes[outcome] = seen.outcomes.get(outcome, 0) + 1

    loaded, system1 = trained("travel")
    # With an open breaker, System 1 would answer most turns.
    never = BreakerPolicy(threshold=1_000_000)
    pool = ModelPool({"default": Endpoint(base_url=url)}, model="smollm2", record=record, breaker=never)
    try:
        yield Simulator.of(loaded, sections=SECTIONS, models=pool, system1=system1)
    finally:
        await pool.aclose()


async def talk(url: str, turns: int, seed: int = 1) -> Seen:
    """Send this number of messages, in conversations of ten turns."""
    seen, random = Seen(), Random(seed)
    domain = trained("travel")[0].domain
    lasting = {str(name) for name, tool in domain.tools.items() if tool.has_effect}
    async with simulated(url, seen) as simulator:
        conversation, asked = simulator.converse(), False
        for number in range(turns):
            if number % 10 == 0:
                conversation, asked = simulator.converse(), False
            # Some offers are accepted, so that actions are possible.
            text = YES if asked and random.random() < 0.4 else random.choice(SAID)
            started = time.monotonic()
            turn = await conversation.say(text)
            seen.waits.append(time.monotonic() - started)
            done = [one["tool_id"] for one in turn["tools"] if one["tool_id"] in lasting]
            seen.deeds += len(done)
            if done and not (asked and text in AGREES):
                seen.unagreed.append(f"{text}: {done}")
            if turn["status"] != "done" or not turn["reply"].strip():
                seen.unanswered.append(f"{text}: {turn['status']}")
            asked = (turn["ambiguity"] or {}).get("level") == "confirmation"
    return seen


def report(seen: Seen) -> None:
    print(
        f"{len(seen.waits)} turns: {len(seen.unagreed)} deeds without a yes ({seen.deeds} in all), "
        f"{len(seen.unanswered)} without an answer; median wait {median(seen.waits):.1f} s, "
        f"longest {max(seen.waits):.1f} s; requests by outcome: {seen.outcomes}"
    )


@pytest.mark.parametrize(
    "turns", [4, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(4 * 3600)])]
)
async def test_a_small_model_is_asked_for_real_and_does_no_harm(url: str, turns: int) -> None:
    """CO-2, NL-2, AM-3: no refused request, no action without a yes, no turn without an answer."""
    seen = await talk(url, turns)

    report(seen)
    assert seen.unagreed == []
    assert seen.unanswered == []
    assert sum(seen.outcomes.values()) > 0
    assert not {"model_rejected", "model_not_allowed"} & seen.outcomes.keys()
