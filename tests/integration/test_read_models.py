"""Read calls for data of turns, over HTTP on real stores."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from domains.analytics.services import Exports, Tables
from orchestrator.adapters.postgres.memory.records import PostgresRecords
from orchestrator.adapters.postgres.memory.scratchpad import PostgresScratchpadArchive
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.adapters.redis.scratchpad import RedisScratchpad
from orchestrator.domain.services import ServiceContext, ToolCall
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import RunStatus
from orchestrator.ports.runs.work import RunEnd
from orchestrator.turns.lease import FrameRecord
from orchestrator.types import DEFAULT_TENANT, SessionId, WorkerId
from tests.integration.gateway import House


async def get(house: House, path: str, status: int = 200, **query: Any) -> Any:
    answer = await house.http.get(path, params=query)
    assert answer.status_code == status, answer.text
    return answer.json()


def frame(frame_id: str, **more: Any) -> FrameRecord:
    body = {
        "frame_id": frame_id,
        "flow_id": frame_id.replace("frame", "flow"),
        "data": [],
        "display_type": "table",
        "display_name": "",
        "source": [],
        "table_id": None,
        "rows": None,
    }
    return FrameRecord(frame_id, body["flow_id"], {**body, **more})


async def analytics(house: House) -> SessionId:
    answer = await house.http.post("/v1/sessions", json={"domain": "analytics"})
    return SessionId(answer.json()["session_id"])


async def test_the_pages_of_a_table_come_from_its_domain(house: House) -> None:
    """CO-3: a page has 512 rows; the last has the remaining rows."""
    session = await analytics(house)
    tables = Tables(ServiceContext(PostgresRecords(house.ports.stores.database, DEFAULT_TENANT, "analytics")))
    shown = await tables.describe(
        table="weather", call=ToolCall("key", session, None, DEFAULT_TENANT, time.time())
    )
    await house.submit(session)
    await house.answer(session, frames=(frame("frame_1", table_id=shown["table_id"], rows=1461),))
    pages = f"/v1/sessions/{session}/frames/frame_1/page"

    first, last = await get(house, f"{pages}/1"), await get(house, f"{pages}/3")

    assert (first["pages"], first["row_count"], len(first["rows"]), len(last["rows"])) == (3, 1461, 512, 437)
    assert set(first["rows"][0]) == set(last["rows"][0])
    assert (await get(house, f"{pages}/4", 404))["code"] == "not_found"
    assert (await get(house, f"{pages}/0", 422))["field"] == "number"
    assert (await get(house, f"/v1/sessions/{session}/frames"))[0]["table_id"] == shown["table_id"]


async def test_an_export_is_downloaded_by_its_owner_alone(house: House) -> None:
    """RS-5: the path in the answer is signed and returns the whole file; the plain path is for its owner."""
    session, other = await analytics(house), await analytics(house)
    exports = Exports(
        ServiceContext(PostgresRecords(house.ports.stores.database, DEFAULT_TENANT, "analytics"))
    )
    call = ToolCall("key", session, None, DEFAULT_TENANT, time.time())
    made = await exports.export(table="airports", call=call)
    path = f"/v1/sessions/{session}/exports/{made['document_id']}"

    answer = await house.http.get(path)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="airports.csv"'
    assert len(answer.text.splitlines()) == 3377
    assert (await house.http.get(made["path"])).text == answer.text
    assert (await house.http.get(made["path"][:-4] + "AAAA")).status_code == 404
    old = await exports.export(table="airports", call=replace(call, now=time.time() - 100_000))
    assert (await house.http.get(old["path"])).status_code == 404
    assert (await house.http.get(path.replace(session, other))).status_code == 404
    assert (await house.http.get(f"/v1/sessions/{session}/exports/nothing")).status_code == 404


async def test_a_frame_that_holds_its_rows_is_paged_too(house: House) -> None:
    session = await house.session()
    await house.submit(session)
    rows = [{"number": number} for number in range(600)]
    await house.answer(session, frames=(frame("frame_1", data=rows), frame("frame_2", data={"a": 1})))
    pages = f"/v1/sessions/{session}/frames"

    assert (await get(house, f"{pages}/frame_1/page/2"))["rows"] == rows[512:]
    await get(house, f"{pages}/frame_2/page/1", 404)
    await get(house, f"{pages}/frame_9/page/1", 404)


async def test_the_scratchpad_is_read_by_kinds(house: House) -> None:
    session = await house.session()
    pad = RedisScratchpad(house.ports.shared.redis, PostgresScratchpadArchive(house.ports.stores.database))
    entries = tuple(
        Entry(flow="summarize", origin="turn_1", kind=kind, at=1.0, text=kind.value)
        for kind in (EntryKind.SUMMARY, EntryKind.FINDING)
    )
    await pad.put(DEFAULT_TENANT, session, entries)
    path = f"/v1/sessions/{session}/scratchpad"

    assert [note["kind"] for note in await get(house, path)] == ["summary", "finding"]
    assert [note["text"] for note in await get(house, path, kind="finding")] == ["finding"]
    await get(house, path, 422, kind="gossip")
    await get(house, "/v1/sessions/nowhere/scratchpad", 404)


async def test_turns_are_listed_with_their_times(house: House) -> None:
    session = await house.session()
    for _ in range(3):
        await house.submit(session)
        await house.answer(session)
    waiting = await house.submit(session)

    newest, *older = await get(house, f"/v1/sessions/{session}/turns")

    assert (newest["turn_id"], newest["status"], newest["waited_ms"]) == (waiting, "queued", None)
    assert [turn["seq"] for turn in older] == [3, 2, 1]
    assert all(turn["ran_ms"] > 0 and turn["waited_ms"] >= 0 for turn in older)
    page = await get(house, f"/v1/sessions/{session}/turns", before=3, limit=1)
    assert [turn["seq"] for turn in page] == [2]


async def test_feedback_is_kept(house: House) -> None:
    session = await house.session()
    turn_id = await house.submit(session)
    path = f"/v1/turns/{turn_id}/feedback"
    said = {"rating": "down", "correction": {"dact": "book_flight", "slots": {"date": "2026-12-04"}}}

    given = await house.http.post(path, json=said)

    assert given.status_code == 201
    assert (given.json()["rating"], given.json()["correction"]) == ("down", said["correction"])
    assert await get(house, "/v1/feedback", session_id=session) == [given.json()]
    assert await get(house, "/v1/feedback") == [given.json()]
    assert await get(house, "/v1/feedback", session_id="session_x") == []
    for wrong, field in (({}, "body"), ({"rating": "meh"}, "rating"), ({"comment": ""}, "comment")):
        refused = await house.http.post(path, json=wrong)
        assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert (await house.http.post("/v1/turns/turn_x/feedback", json=said)).status_code == 404


class Worker:
    worker_id = WorkerId(7)


async def test_a_sessions_log_tells_of_its_runs(house: House) -> None:
    """RT-15: started, ended, not run, canceled; runs without a session are not reported."""
    session = await house.session()
    runs, work = (
        PostgresRuns(house.ports.stores.database),
        PostgresRunWork(house.ports.stores.database, Worker()),
    )
    graph = (
        NewRun(flow="first", session_id=session),
        NewRun(flow="second", session_id=session, depends_on=("first",)),
    )
    started = await runs.start(graph)
    claim = await work.claim(started.runs["first"], {})
    assert claim is not None
    await work.finish(claim, RunEnd(RunStatus.FAILED, error="boom"))
    other = (await runs.start((NewRun(flow="third", session_id=session),))).runs["third"]
    await runs.cancel(DEFAULT_TENANT, other)
    alone = (await runs.start((NewRun(flow="fourth"),))).runs["fourth"]
    assert await work.claim(alone, {}) is not None

    events = await house.logged(session)

    assert {event.type for event in events} == {"run_progress"}
    assert [event.number for event in events] == [1, 2, 3, 4]
    told = [(event.payload["flow"], event.payload["status"]) for event in events]
    assert told == [("first", "running"), ("second", "blocked"), ("first", "failed"), ("third", "cancelled")]
