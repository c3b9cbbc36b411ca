"""Turns of all sessions: found by words and quality, counted by day, of one tenant only (RT-22)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from orchestrator.adapters.postgres.turns.search import PostgresTurnSearch
from orchestrator.errors import InvalidInput
from orchestrator.turns.search import TurnFilter
from orchestrator.types import DEFAULT_TENANT, JsonObject, TenantId
from parley_client import AsyncClient
from tests.contract.factories import submission
from tests.integration.gateway import House, open_house

SINCE = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
async def house(database_url: str, redis_url: str) -> AsyncIterator[House]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("TRUNCATE sessions CASCADE")
    async with open_house(database_url, redis_url) as house:
        yield house


def signal(kind: str, /, **payload: Any) -> JsonObject:
    return {"id": kind, "source": "test", "type": kind, "time": "2026-01-01T00:00:00Z", "payload": payload}


async def answer(house: House, said: str, reply: str = "Fine.", *signals: JsonObject, **result: Any) -> str:
    """Create a session with a turn, and return the turn ID."""
    session_id = await house.session()
    turn_id = await house.submit(session_id, said)
    await house.answer(session_id, result={"reply": reply, **result}, signals=signals)
    return turn_id


def said(found: JsonObject) -> list[str]:
    return [turn["said"] for turn in found["turns"]]


async def test_turns_are_found_by_words_of_both_sides(house: House, client: AsyncClient) -> None:
    for text, reply in (("To Oslo", "From where?"), ("100% sure", "Oslo it is"), ("to Rome", "From where?")):
        await answer(house, text, reply)

    assert said(await client.search_turns("oslo")) == ["100% sure", "To Oslo"]
    assert said(await client.search_turns("from OSLO")) == ["To Oslo"]
    assert said(await client.search_turns("0% sure")) == ["100% sure"]
    assert said(await client.search_turns("_%")) == []
    assert said(await client.search_turns()) == ["to Rome", "100% sure", "To Oslo"]
    with pytest.raises(InvalidInput, match="at most 8 words, not 9") as refused:
        await client.search_turns("from where to where and when and how long")
    assert refused.value.field == "q"


async def test_turns_are_found_by_their_quality(house: House, client: AsyncClient, database_url: str) -> None:
    call = signal("model_call", tokens=70, cost_micros=900)
    refused = signal("model_call", tokens=0, cost_micros=0, refused_by="user_day")
    unknown = signal("prediction", kind="unknown")
    bad = await answer(house, "bad")
    await answer(house, "unclear", "What?", unknown)
    await answer(house, "dear", "Here.", call, call, signal("prediction", kind="task"))
    await answer(house, "broken", "Sorry.", properties={"templates": ["breakdown"]})
    slow = await answer(house, "slow")
    await answer(house, "bounded", "Hm.", refused)
    await client.give_feedback(bad, rating="down")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE turns SET started_at = finished_at - interval '3 s' WHERE turn_id = %s", (slow,)
        )

    assert said(await client.search_turns(rated_down=True)) == ["bad"]
    assert said(await client.search_turns(not_understood=True)) == ["unclear"]
    assert said(await client.search_turns(min_cost_micros=1800)) == ["dear"]
    assert said(await client.search_turns(failed=True)) == ["broken"]
    assert said(await client.search_turns(min_ms=2500)) == ["slow"]
    assert said(await client.search_turns("slow", failed=True)) == []
    (bounded,) = (await client.search_turns(over_budget=True))["turns"]
    assert (bounded["said"], bounded["refused_by"]) == ("bounded", "user_day")
    (day,) = await client.turns_by_day()
    counted = {"turns": 6, "failed": 1, "over_budget": 1, "tokens": 140, "cost_micros": 1800}
    assert await client.turns_by_user() == [{"user_id": None, **counted}]
    counted |= {"not_understood": 1, "rated_down": 1}
    assert counted.items() <= day.items()
    assert 0 < day["median_ms"] < 2500


async def test_pages_lead_to_every_turn_once(house: House, client: AsyncClient) -> None:
    """A page that has read its limit without enough matches links to the next."""
    for number in range(7):
        await answer(house, f"number {number}", "Even." if number % 2 == 0 else "Odd.")

    first = await client.search_turns("even", limit=3)
    rest = await client.search_turns("even", limit=3, before=first["next"])
    assert (said(first), said(rest)) == (["number 6", "number 4", "number 2"], ["number 0"])
    assert rest["next"] is None

    search = PostgresTurnSearch(house.ports.stores.database)
    found, before = list[str](), None
    for _ in range(4):
        wanted = TurnFilter(words=("odd",))
        page = await search.find(DEFAULT_TENANT, wanted, since=SINCE, before=before, most_searched=2)
        assert len(page.turns) <= 1
        found += [turn["said"] for turn in page.turns]
        before = page.next
    assert (found, before) == (["number 5", "number 3", "number 1"], None)


async def test_other_tenants_and_older_turns_are_left_out(house: House, client: AsyncClient) -> None:
    await answer(house, "mine")
    other = TenantId("other")
    session = await house.ports.stores.sessions.create(other, "travel")
    await house.ports.stores.inbox.submit(submission(other, session.session_id, "theirs"))

    assert said(await client.search_turns()) == ["mine"]
    search = PostgresTurnSearch(house.ports.stores.database)
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert (await search.find(DEFAULT_TENANT, TurnFilter(), since=later)).turns == []
    assert [day["turns"] for day in await search.by_day(DEFAULT_TENANT, since=SINCE)] == [1]
    assert [user["turns"] for user in await search.by_user(DEFAULT_TENANT, since=SINCE, limit=9)] == [1]
