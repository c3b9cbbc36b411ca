"""Old data are deleted at any volume, and forgotten data are deleted everywhere (RT-28, ST-3)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.postgres.maintenance import PostgresMaintenance
from orchestrator.adapters.postgres.tables import metadata
from orchestrator.ports.memory.documents import NewDocument
from orchestrator.ports.memory.preferences import Preference, PreferenceKind, Source
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import RunStatus
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId, UserId
from tests.contract.factories import commit_of
from tests.integration.internal.test_maintenance import House, spoken

SECRET = "passport X4711"
PER_SESSION = 1000
KEEP_EPOCHS = 100

FILL = """
INSERT INTO sessions (session_id, tenant_id, domain)
SELECT 'old-' || n, 'default', 'travel' FROM generate_series(1, {sessions}) AS n;
INSERT INTO lanes (session_id, tenant_id, epoch, next_event)
SELECT 'old-' || n, 'default', {rows}, {rows} + 1 FROM generate_series(1, {sessions}) AS n;
INSERT INTO state_history (session_id, epoch, tenant_id, diff, snapshot)
SELECT 'old-' || n, epoch, 'default', '{{}}', CASE WHEN epoch % 20 = 1 THEN '{{}}'::json END
FROM generate_series(1, {sessions}) AS n, generate_series(1, {rows}) AS epoch;
INSERT INTO events (session_id, number, tenant_id, body, at)
SELECT 'old-' || n, number, 'default', '[]', now() - ({rows} - number) * interval '1 hour'
FROM generate_series(1, {sessions}) AS n, generate_series(1, {rows}) AS number;
ANALYZE sessions, lanes, state_history, events"""
"""A thousand hours with a thousand epochs and events each; 720 hours are thirty days."""

KEPT_EPOCHS = """
    SELECT sum(count)::int, max(count), min(count)
    FROM (SELECT count(*) FROM state_history WHERE session_id LIKE 'old-%' GROUP BY session_id) AS sizes"""

KEPT_EVENTS = """
    SELECT count(*), count(*) FILTER (WHERE at < now() - interval '721 hours')
    FROM events WHERE session_id LIKE 'old-%'"""

LEFT_OUT = """
    SELECT DISTINCT kept.relname
    FROM pg_class AS kept JOIN pg_attribute AS named ON named.attrelid = kept.oid
    WHERE kept.relnamespace = current_schema()::regnamespace AND kept.relkind = 'r'
      AND named.attname IN ('session_id', 'turn_id', 'run_id') AND NOT named.attisdropped
      AND NOT EXISTS (
          SELECT FROM pg_constraint
          WHERE conrelid = kept.oid AND contype = 'f' AND confdeltype = 'c'
            AND confrelid IN ('sessions'::regclass, 'lanes'::regclass, 'turns'::regclass, 'internal_runs'::regclass))
    ORDER BY 1"""


async def test_every_table_of_a_session_goes_with_it(house: House) -> None:
    """A new table without a foreign key would keep a deleted session's data."""
    assert await house.execute(LEFT_OUT) == [
        ("internal_claims",),  # running processes, for seconds only
        ("internal_runs",),  # its sessions may not exist; entries are deleted by name
        ("sessions",),
    ]


async def everything(house: House) -> dict[str, bytes]:
    """Return all stored data by place: each table, and each Redis key."""
    stored: dict[str, bytes] = {}
    for table in metadata.tables:
        rows = await house.execute(f"SELECT row::text FROM {table} AS row")
        stored[table] = b"\n".join(row[0].encode() for row in rows)
    redis: Any = Redis.from_url(house.ports.settings.redis_url)
    async for key in redis.scan_iter():
        stored[f"redis {key.decode()}"] = key + (await redis.dump(key) or b"")
    await redis.aclose()
    return stored


async def test_a_user_who_is_forgotten_is_nowhere_any_more(house: House) -> None:
    """RT-28: data of the conversation, its notes, its runs and its memory."""
    secret: dict[str, Any] = {"text": SECRET}
    sessions = [await house.session({**spoken(1), "notes": secret}, user="ann") for _ in range(2)]
    bystander = await house.session({**spoken(1), "notes": {"text": "tea"}}, user="bob")
    for session_id in sessions:
        given = TurnInput(text=SECRET)
        await house.ports.stores.inbox.submit(Submission(session_id, given, DEFAULT_TENANT))
        note = Entry("look", "turn 1", EntryKind.FINDING, time.time(), text=SECRET)
        await house.ports.shared.scratchpad.put(DEFAULT_TENANT, session_id, (note,), operation=session_id)
        run = NewRun("summarize_session", inputs=(SECRET,), tenant_id=DEFAULT_TENANT, session_id=session_id)
        await house.ports.stores.runs.start((run,))
    wish = Preference("note.x", PreferenceKind.NOTE, Source.EXPLICIT, text=SECRET)
    await house.ports.stores.preferences.remember(DEFAULT_TENANT, UserId("ann"), (wish,))
    await house.ports.context.documents.add(NewDocument(DEFAULT_TENANT, SECRET, user_id=UserId("ann")))
    before = [name for name, content in (await everything(house)).items() if SECRET.encode() in content]
    assert {"turns", "states", "preferences", "documents", "internal_runs"} <= set(before)
    assert any(name.startswith("redis parley:scratchpad:") for name in before)

    [record] = await house.run("forget", inputs=({"user_id": "ann"},))

    assert (record.status, record.closing) == (RunStatus.DONE, {"sessions": 2})
    for name, content in (await everything(house)).items():
        for trace in (SECRET, "ann", *sessions):
            assert trace.encode() not in content, f"{trace} is in {name}"
    assert (await house.ports.stores.sessions.get(DEFAULT_TENANT, bystander)).epoch == 1


@pytest.mark.parametrize("flow", ["forget", "expire_sessions"])
async def test_a_note_that_arrives_while_its_session_is_deleted_is_deleted_with_it(
    house: House, flow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RT-28: the outbox delivers a turn's note at any time, and Redis would keep it for a week."""
    session_id = await house.session(spoken(1), user="late")
    note = Entry("look", "turn 1", EntryKind.FINDING, time.time(), text=SECRET)
    delete = PostgresMaintenance.delete_session

    async def delete_while_it_arrives(self: PostgresMaintenance, *names: Any) -> Any:
        await house.ports.shared.scratchpad.put(DEFAULT_TENANT, session_id, (note,))
        return await delete(self, *names)

    monkeypatch.setattr(PostgresMaintenance, "delete_session", delete_while_it_arrives)
    if flow == "expire_sessions":
        await house.ports.stores.sessions.close(DEFAULT_TENANT, session_id)
        house.config[flow] = {"retention_s": 0}
        await house.run(flow)
    else:
        await house.run(flow, inputs=({"session_id": session_id},))

    left = [name for name, content in (await everything(house)).items() if session_id.encode() in content]
    assert left == []


async def test_what_is_forgotten_is_forgotten_in_branches_too(house: House) -> None:
    """RT-28, ST-4: of a user in all their sessions; of a session in its forks, and in no other."""
    branch, secret = house.ports.stores.sessions.branch, {"text": SECRET}
    root = await house.session({**spoken(1), "notes": secret}, user="xavier")
    first = (await branch(DEFAULT_TENANT, root)).session_id
    beside = (await branch(DEFAULT_TENANT, root)).session_id
    deeper = (await branch(DEFAULT_TENANT, first)).session_id

    [record] = await house.run("forget", inputs=({"session_id": first},))

    assert record.closing == {"sessions": 2}
    left = await house.execute("SELECT session_id FROM sessions WHERE user_id = 'xavier'")
    assert {name for (name,) in left} == {root, beside}
    assert not [name for name, content in (await everything(house)).items() if deeper.encode() in content]
    [record] = await house.run("forget", inputs=({"user_id": "xavier"},))
    assert record.closing == {"sessions": 2}
    for name, content in (await everything(house)).items():
        for trace in (SECRET, "xavier", root, beside):
            assert trace.encode() not in content, f"{trace} is in {name}"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rows", [40_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
async def test_histories_stay_bounded_while_turns_run(
    house: House, rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions = rows // (2 * PER_SESSION)
    await house.execute(FILL.format(sessions=sessions, rows=PER_SESSION))
    house.config["prune_archive"] = {"keep_epochs": KEEP_EPOCHS}
    turns: list[float] = []
    talking = asyncio.create_task(_talk(house, turns))
    while not turns and not talking.done():
        await asyncio.sleep(0.01)
    began = time.monotonic()
    chains = [await house.run(flow) for flow in ("prune_archive", "prune_runtime")]
    took_s = time.monotonic() - began
    talking.cancel()
    with pytest.raises(asyncio.CancelledError):  # and no data of a turn
        await talking

    [(epochs, most, least)] = await house.execute(KEPT_EPOCHS)
    [(events, older)] = await house.execute(KEPT_EVENTS)
    turns.sort()
    with capsys.disabled():
        print(
            f"\n{rows} rows of {sessions} sessions: {rows - epochs - events} went in {took_s:.1f} s;"
            f" {len(turns)} turns beside, p50 {1000 * turns[len(turns) // 2]:.0f} ms, at most {turns[-1]:.2f} s"
        )
    assert {record.status for chain in chains for record in chain} == {RunStatus.DONE}
    assert (most, least, older) == (120, 120, 0), "to the snapshot before the hundred newest; for thirty days"
    assert turns[-1] < 5.0
    talked = await house.ports.stores.sessions.get(DEFAULT_TENANT, SessionId("talking"))
    assert len(turns) <= talked.epoch <= len(turns) + 1, "one may have been committed while it was cancelled"


async def _talk(house: House, turns: list[float]) -> None:
    session_id = SessionId("talking")
    await house.ports.stores.sessions.create(DEFAULT_TENANT, "travel", session_id=session_id)
    while True:
        began = time.monotonic()
        given = TurnInput(text="hello")
        await house.ports.stores.inbox.submit(Submission(session_id, given, DEFAULT_TENANT))
        lease = await house.lane.claim(session_id)
        assert lease is not None
        await house.lane.commit(lease, commit_of(lease.work, session_id))
        turns.append(time.monotonic() - began)
        await asyncio.sleep(0.01)
