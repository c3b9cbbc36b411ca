"""The same conversations with interpretation by a model (System 2), over HTTP with the scripted endpoint.

The model answers with System 1's interpretation; the pipeline only sees the JSON.
"""

from __future__ import annotations

from typing import Any

import pytest

from lab.evaluation.conversations import beginning_of
from orchestrator.domain.configuration import merge_sections
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.telemetry import Signal, SignalType
from parley.simulator import Simulator
from tests.conversation import scripted
from tests.trained import trained
from tests.transcripts.recorded import Author
from tests.transcripts.test_transcripts import conversations, go_through

SYSTEM2: dict[str, Any] = {
    "nlu": {"mode": "system2"},
    "models": {
        "per_prompt": {"pex_skill": {"model": "scripted", "provider": "nowhere"}},
        "timeout_s": 300,
        "patience_s": 600,
    },
    "resilience": {"tool_timeout_ms": 300_000},
}
"""Configuration: the model interprets messages, but runs no skills, which have their own conversations.

Time limits are long, for busy machines.
"""
EVERY = 6
"""The short form runs one in this many conversations; the long form runs all."""


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("domain", sorted({domain for domain, _ in conversations()[::EVERY]}))
async def test_conversations_go_as_written(domain: str, every: int, subtests: pytest.Subtests) -> None:
    """NL-2, NL-4: kinds, flows and slots of a structured answer have the same effect as those of System 1."""
    for case in conversations()[::every]:
        if case[0] == domain:
            with subtests.test(case[1].name):
                await hold(case)


async def hold(case: tuple[str, ConversationEntry]) -> None:
    domain, conversation = case
    loaded, system1 = trained(domain)
    author, calls = Author(system1), list[Signal]()
    async with scripted(author.script(), record=calls.append) as (model, pool):
        simulator = Simulator.of(
            loaded,
            sections=merge_sections(conversation.config, SYSTEM2),
            models=pool,
            system1=author,
            at=beginning_of(conversation),
        )
        await go_through(conversation, simulator)

    assert [call.payload for call in calls if call.payload["outcome"] != "answered"] == []
    expected = {"system2", "command", "action", *(["system1"] if author.chose else [])}
    assert sources(simulator.signals) <= expected | refused(simulator.signals)
    assert len(model.requests) == len(calls)


def sources(signals: list[Signal]) -> set[str]:
    return {str(s.payload["source"]) for s in signals if s.type is SignalType.PREDICTION}


def refused(signals: list[Signal]) -> set[str]:
    """Return the answer to a rejected message, which System 1 did not interpret either."""
    return {"system1" for s in signals if s.type is SignalType.CHECK and s.payload.get("check") == "prepare"}
