"""Effects of environment settings with non-default values, as seen through a process's interfaces (CO-5)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg
import pytest

from gateway.wiring import open_dependencies
from orchestrator.adapters.models.pool import open_embedder
from orchestrator.bootstrap import open_ports
from orchestrator.errors import InboxFull
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.settings import Settings
from orchestrator.turns.turn import Submission
from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Simulator
from parley.testing.scripted_model import Fail, Rule, Script, ScriptedModel
from tests.contract.factories import submission
from tests.integration.modelled import TAPAS
from tests.trained import trained

WHO = "SELECT pg_backend_pid()::text || pg_sleep(0.3)::text AS pid"


@pytest.fixture
def addresses(database_url: str, redis_url: str) -> dict[str, str]:
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE sessions, turns, journal, events, utterances, state_history CASCADE")
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url}


def _turn(session: str) -> Submission:
    return submission(DEFAULT_TENANT, session, create_session=True, domain="travel")


async def test_a_session_takes_so_many_unfinished_turns(addresses: dict[str, str]) -> None:
    async with open_ports(Settings(**addresses, PARLEY_SESSION_INBOX_LIMIT=2)) as ports:
        for _ in range(2):
            await ports.stores.inbox.submit(_turn("one"))
        with pytest.raises(InboxFull):
            await ports.stores.inbox.submit(_turn("one"))
        await ports.stores.inbox.submit(_turn("another"))


async def test_all_sessions_together_take_so_many(addresses: dict[str, str]) -> None:
    async with open_ports(Settings(**addresses, PARLEY_TOTAL_INBOX_LIMIT=1)) as ports:
        await ports.stores.inbox.submit(_turn("the-one"))
        with pytest.raises(InboxFull):
            await ports.stores.inbox.submit(_turn("one-more"))


@pytest.mark.parametrize("connections", [2, 4])
async def test_so_many_connections_serve_the_statements(addresses: dict[str, str], connections: int) -> None:
    async with open_ports(Settings(**addresses, PARLEY_DATABASE_POOL_SIZE=connections)) as ports:
        asking = (ports.stores.database.fetch_one(WHO, {}) for _ in range(4 * connections))
        servers = await asyncio.gather(*asking)
    assert len(set(servers)) == connections


async def test_the_gateway_counts_by_the_rates_that_are_set(addresses: dict[str, str]) -> None:
    rates = {"PARLEY_CALLER_RATE": 11, "PARLEY_TENANT_RATE": 22, "PARLEY_SESSION_RATE": 33}
    async with open_dependencies(Settings(**addresses, **rates)) as dependencies:
        found = dependencies.access.rates
    assert (found.caller, found.tenant, found.session) == (11, 22, 33)


@pytest.mark.parametrize(("name", "space"), [("", HashingEmbedder().space), ("small-one", "model-small-one")])
async def test_documents_are_embedded_by_the_model_that_is_named(
    addresses: dict[str, str], name: str, space: str
) -> None:
    chosen = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "PARLEY_EMBEDDING_MODEL": name}
    async with AsyncExitStack() as closing:
        assert open_embedder(Settings(**addresses, **chosen), closing).space == space


async def test_what_the_first_model_fails_at_the_fallback_of_the_environment_does(
    addresses: dict[str, str],
) -> None:
    models = {"PARLEY_MODEL": "first", "PARLEY_FALLBACK_MODEL": "second"}
    with ScriptedModel(Script(rules=(Rule(replies=(Fail(500),)),))) as model:
        settings = Settings(**addresses, **models, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="none")
        async with open_ports(settings) as ports:
            loaded, system1 = trained("travel")
            talk = Simulator.of(
                loaded, sections={"nlu": {"mode": "system2"}}, models=ports.models, system1=system1
            )
            await talk.converse().say(TAPAS)
    assert list(dict.fromkeys(request.model for request in model.requests)) == ["first", "second"]
