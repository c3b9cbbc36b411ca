"""A trigger joins the running flows, and starts the other flows after them (IF-11)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import RunStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, new_id


@pytest.fixture
async def runs(database_url: str) -> AsyncIterator[PostgresRuns]:
    async with Database(database_url) as database:
        yield PostgresRuns(database)


def nodes(session: SessionId, **depends_on: tuple[str, ...]) -> tuple[NewRun, ...]:
    return tuple(
        NewRun(flow, depends_on=needed, session_id=session, flight_key=f"{session}:{flow}")
        for flow, needed in depends_on.items()
    )


async def test_a_flow_that_is_at_work_does_not_swallow_the_rest_of_its_graph(runs: PostgresRuns) -> None:
    session = SessionId(new_id("session"))
    by_hand = await runs.start(nodes(session, summarize=()))

    started = await runs.start(
        nodes(session, summarize=(), distil=("summarize",), tidy=("distil",)), key=f"due:{session}"
    )

    assert started.runs["summarize"] == by_hand.runs["summarize"]
    distil = await runs.get(DEFAULT_TENANT, started.runs["distil"])
    assert distil.status is RunStatus.WAITING
    assert (await runs.get(DEFAULT_TENANT, by_hand.runs["summarize"])).successors == (distil.run_id,)
    await runs.cancel(DEFAULT_TENANT, by_hand.runs["summarize"])
    assert (await runs.get(DEFAULT_TENANT, distil.run_id)).status is RunStatus.BLOCKED


async def test_the_same_message_starts_nothing_twice(runs: PostgresRuns) -> None:
    session = SessionId(new_id("session"))
    await runs.start(nodes(session, summarize=()))
    graph = nodes(session, summarize=(), distil=("summarize",))
    first = await runs.start(graph, key=f"due:{session}")

    again = await runs.start(graph, key=f"due:{session}")

    assert again.runs == first.runs
    assert again.joined
    assert len(await runs.list(DEFAULT_TENANT, session_id=session)) == 2
