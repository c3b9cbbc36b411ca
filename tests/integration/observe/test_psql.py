"""The tables show operators a session's state, the results of its turns and their journal."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
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
from parley.embedded.postgres import find_binaries
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
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    of_session, of_turns, of_journal = block.strip().splitlines()
    ((shown,),) = run_psql(database_url, of_session, session=session)
    turns = run_psql(database_url, of_turns, session=session)
    calls = [row for turn_id, *_ in turns for row in run_psql(database_url, of_journal, turn=turn_id)]

    assert orjson.loads(shown) == state
    assert [text for _, _, text, _ in turns] == list(BOOKING)
    assert {status for _, status, _, _ in turns} == {"done"}
    assert all(orjson.loads(result)["text"] for *_, result in turns)
    assert {kind for _, kind, _, _ in calls} == {"tool"}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), before=objects)
def test_patches_are_applied_as_in_python(data: st.DataObject, before: Any, database_url: str) -> None:
    after = data.draw(edited(before).filter(is_object) | objects)
    documents = [orjson.dumps(one).decode() for one in (before, diff(before, after))]
    with psycopg.connect(database_url) as connection:
        ((patched,),) = connection.execute("SELECT parley_patched(%s, %s)::text", documents).fetchall()
    assert numbers_as_floats(patched) == numbers_as_floats(orjson.dumps(after))


def run_psql(database_url: str, statement: str, **variables: str) -> list[list[str]]:
    """Return the rows that psql prints."""
    set_up = [f"--set={name}={value}" for name, value in variables.items()]
    command = [find_binaries(None) / "psql", "--no-psqlrc", "--csv", "--tuples-only", *set_up, database_url]
    printed = subprocess.run(command, input=statement, capture_output=True, text=True, check=True).stdout
    return list(csv.reader(io.StringIO(printed)))


def numbers_as_floats(document: str | bytes) -> Any:
    """`jsonb` writes 1e16 as an integer."""
    return json.loads(document, parse_int=float)
