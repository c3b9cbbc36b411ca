"""Session flows can't access sessions, neither with their tools nor in the database (IF-17)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from internal_flows.builtin import FLOWS, session
from internal_flows.catalogue import Catalogue
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.roles import SESSION_FLOWS, make_session_flows_role
from orchestrator.bootstrap import Ports, open_lane, open_ports
from orchestrator.errors import Unavailable
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.ports.runs.status import RunStatus
from orchestrator.settings import Settings
from orchestrator.types import DEFAULT_TENANT, SessionId, UserId, new_id
from tests.contract.internal.in_process import InProcessRunner
from tests.integration.access.tenants import NOT_OF_TENANTS, A, Place, insert_row, tables_of
from tests.integration.internal.test_maintenance import House, spoken
from workers.internal.tools import SESSION_TOOLS, make_session_side, make_tools

WRITTEN = {"scratchpad_entries", "preferences", "documents", "document_chunks"}
ADDED = {"forgotten_preferences"}
READ = {"records"}
OURS = ("orchestrator", "workers", "internal_flows")


def reached_from(thing: object, seen: set[int]) -> Iterator[object]:
    """Return all of Parley's objects that an object references, at any depth."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield thing
    if isinstance(thing, dict):
        parts: list[Any] = list(thing.values())
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    elif isinstance(thing, Database) or not type(thing).__module__.startswith(OURS):
        bound = getattr(thing, "__self__", None)
        cells = [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
        parts = [bound, *cells]
    else:
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [getattr(thing, name, None) for name in (*slots, *getattr(thing, "__dict__", ()))]
    for part in parts:
        yield from reached_from(part, seen)


def databases_of(tool: object) -> list[Database]:
    return [thing for thing in reached_from(tool, set()) if isinstance(thing, Database)]


async def test_the_tools_of_session_flows_reach_no_connection_with_more_rights(
    place: Place, redis_url: str
) -> None:
    settings = Settings(DATABASE_URL=place.urls["runtime"], REDIS_URL=redis_url)
    async with open_ports(settings) as ports:
        tools = make_tools(ports)
        for flow in session.FLOWS:
            assert set(flow.tools) <= SESSION_TOOLS.keys(), flow.name
        for name in SESSION_TOOLS:
            assert set(map(id, databases_of(tools[name]))) <= {id(ports.flows_database)}, name
        assert databases_of(tools["scratchpad"]) == [ports.flows_database]
        assert databases_of(tools["maintenance"]) == [ports.stores.database]


def test_the_role_of_session_flows_reads_and_writes_nothing_of_a_session(filled: Place) -> None:
    """Nor the data that starts it. Fails if a later migration adds an accessible table."""
    with filled.as_role("runtime") as connection:
        connection.execute(f"SET ROLE {SESSION_FLOWS}")
        for table in set(tables_of(connection)) - NOT_OF_TENANTS - WRITTEN:
            attempts = {
                "INSERT": f"INSERT INTO {table} (tenant_id) VALUES ('{A}')",
                "UPDATE": f"UPDATE {table} SET tenant_id = tenant_id",
                "DELETE": f"DELETE FROM {table}",
                "SELECT": f"SELECT FROM {table}",
            }
            attempts.pop("SELECT" if table in READ else "INSERT" if table in ADDED else "", None)
            for attempt in attempts.values():
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(attempt)
        for table in READ | WRITTEN:
            assert connection.execute(f"SELECT FROM {table}").rowcount > 0, table
        insert_row(connection, "preferences", A)


@pytest.fixture
async def worker(place: Place, redis_url: str) -> Any:
    """Open the stores like a production worker, with a login that has the rights of its role."""
    settings = Settings(DATABASE_URL=place.urls["runtime"], REDIS_URL=redis_url)
    async with open_ports(settings) as ports, open_lane(ports) as lane:
        yield House(ports, lane, {})


async def test_all_session_flows_work_with_the_rights_that_they_have(worker: House) -> None:
    user, ports = UserId(new_id("user")), worker.ports
    session_id = await worker.session(spoken(3), user=user)
    told = "I never fly on Fridays."
    note = Entry("t", "turn 1", EntryKind.FINDING, 1.0, text=told, data={"about": "user", "explicit": True})
    known = Entry("t", "turn 1", EntryKind.FINDING, 1.0, text="Gate nine is shut.", data={"explicit": True})
    await ports.shared.scratchpad.put(DEFAULT_TENANT, session_id, (note, known))
    tools = make_tools(ports)
    runner = InProcessRunner(Catalogue(FLOWS, tools=tools), sessions=make_session_side(ports))

    runs = await runner.run_graph(Catalogue(FLOWS).new_graph("summary_due", session_id=session_id))
    question = {"question": "Which gate is shut?", "domain": "travel", "user_id": user}
    gather = Catalogue(FLOWS).new_run("gather_context", session_id=session_id, parameters=question)
    [gathered] = await runner.run(gather)

    assert {run.status for run in (*runs.values(), gathered)} == {RunStatus.DONE}, runs
    assert [one["kind"] for one in await worker.proposals(session_id)] == ["summary"]
    assert [one.text for one in await ports.stores.preferences.of_user(DEFAULT_TENANT, user)] == [told]
    assert gathered.closing["failed"] == {}
    assert any("Gate nine is shut." in one["text"] for one in gathered.closing["found"])


def test_who_migrates_and_may_not_make_the_role_is_told_what_follows_and_what_to_do(place: Place) -> None:
    with place.as_role("gateway") as connection, capture_logs() as told:
        make_session_flows_role(connection)

    [warning] = told
    assert "forgetting and repairs can't run; `parley doctor` shows the fix" in warning["event"]


async def test_where_the_role_is_missing_the_flow_says_so(place: Place, redis_url: str) -> None:
    async with open_ports(Settings(DATABASE_URL=place.urls["gateway"], REDIS_URL=redis_url)) as ports:
        with pytest.raises(Unavailable, match="use the role parley_session_flows"):
            await _read_notes(ports)
        with pytest.raises(Unavailable, match="forgetting and repairs"):
            await make_tools(ports)["scratchpad"].forget(DEFAULT_TENANT, SessionId("any"))
        with pytest.raises(Unavailable, match="use the role parley_session_flows"):
            await make_tools(ports)["preferences"].of_user(DEFAULT_TENANT, UserId("anybody"))


async def _read_notes(ports: Ports) -> list[Entry]:
    return await make_tools(ports)["scratchpad"].read(DEFAULT_TENANT, SessionId(new_id("session")))
