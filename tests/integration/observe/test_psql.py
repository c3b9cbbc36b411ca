"""The tables show operators a session's state, the results of its turns and their journal."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.environment import open_lanes
from benchmarks.profile import Talk
from benchmarks.turns import BOOKING
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.types import DEFAULT_TENANT, is_object
from parley.embedded import Stores
from tests.json_documents import edited, objects
from tests.processes.forked import ROOT

PAGE = ROOT / "docs" / "observe.md"


async def test_the_documented_statements_show_a_conversation(database_url: str, redis_url: str) -> None:
    async with open_lanes(Stores(database_url, redis_url)) as (ports, lanes):
        talk = Talk(ports, lanes, sessions=1)
        await talk.take(len(BOOKING))
        (session,) = talk.names
        record = await ports.stores.sessions.get(DEFAULT_TENANT, session)
        state = await ports.stores.sessions.state_at(DEFAULT_TENANT, session, record.epoch)
    with psycopg.connect(database_url) as connection:
        (block,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
        of_session, of_turns, of_journal = block.strip().splitlines()
        ((shown,),) = read(connection, of_session, session)
        turns = read(connection, of_turns, session)
        journal = [row for turn_id, *_ in turns for row in read(connection, of_journal, turn_id)]

    assert orjson.loads(shown) == state
    assert [text for _, _, text, _ in turns] == list(BOOKING)
    assert {status for _, status, _, _ in turns} == {"done"}
    assert all(result["text"] for *_, result in turns)
    assert {kind for _, kind, _, _ in journal} == {"tool"}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), before=objects)
def test_patches_are_applied_as_in_python(data: st.DataObject, before: Any, database_url: str) -> None:
    after = data.draw(edited(before).filter(is_object) | objects)
    documents = [orjson.dumps(one).decode() for one in (before, diff(before, after))]
    with psycopg.connect(database_url) as connection:
        ((patched,),) = connection.execute("SELECT parley_patched(%s, %s)::text", documents).fetchall()
    assert numbers_as_floats(patched) == numbers_as_floats(orjson.dumps(after))


def read(connection: psycopg.Connection[Any], query: str, value: str) -> list[tuple[Any, ...]]:
    return connection.execute(re.sub(r":'\w+'", "%s", query).encode(), (value,)).fetchall()


def numbers_as_floats(document: str | bytes) -> Any:
    """`jsonb` writes 1e16 as an integer."""
    return json.loads(document, parse_int=float)
