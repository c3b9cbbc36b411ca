"""The shipped evaluations through each strict provider: the same results, no refusal, no apology.

The provider's model answers with System 1's interpretation, in the provider's format.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.evaluation.conversations import beginning_of
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.configuration import merge_sections
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.telemetry import Signal, SignalType
from parley.simulator import Simulator
from parley.testing.scripted_model import Script
from tests.providers.dialects import DIALECTS
from tests.providers.endpoints import MODELS, endpoint_of
from tests.providers.server import StrictProvider, Way
from tests.trained import trained
from tests.transcripts.recorded import Author
from tests.transcripts.test_transcripts import conversations, go_through
from tests.transcripts.test_transcripts_with_model import SYSTEM2

# Some provider clients leave the closing of connections to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SHIPPED = ("travel", "analytics")
SHORT = 80
"""The short form runs one in this many shipped conversations; the long form runs all."""


@asynccontextmanager
async def asked(
    name: str, script: Script, *ways: Way, signals: list[Signal] | None = None
) -> AsyncIterator[tuple[StrictProvider, ModelPool]]:
    """Yield a strict provider, and the models of a process configured for it."""
    calls: list[Signal] = [] if signals is None else signals
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_VERSION", "2025-04-01-preview")
        with StrictProvider(DIALECTS[name](), script, *ways) as provider:
            endpoint = endpoint_of(name, provider.url)
            pool = ModelPool({"default": endpoint}, model=MODELS[name], record=calls.append)
            try:
                yield provider, pool
            finally:
                await pool.aclose()


@pytest.mark.parametrize("every", [SHORT, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DIALECTS)
async def test_conversations_go_as_written(name: str, every: int, subtests: pytest.Subtests) -> None:
    """CO-2: the same with every provider as without a model."""
    for case in conversations(*SHIPPED)[::every]:
        with subtests.test(case[1].name):
            await hold(name, case)


async def hold(name: str, case: tuple[str, ConversationEntry]) -> None:
    domain, conversation = case
    loaded, system1 = trained(domain)
    author, calls = Author(system1), list[Signal]()
    async with asked(name, author.script(), signals=calls) as (provider, pool):
        simulator = Simulator.of(
            loaded,
            sections=merge_sections(conversation.config, SYSTEM2),
            models=pool,
            system1=author,
            at=beginning_of(conversation),
        )
        await go_through(conversation, simulator)

    assert provider.refused == []
    questions = [call.payload for call in calls if call.type is SignalType.MODEL_CALL]
    assert [one for one in questions if one["outcome"] != "answered"] == []
    assert len(questions) == len(provider.bodies)
