"""The gateway's core calls, over the in-memory stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import httpx
import orjson
import pytest

from gateway.dependencies import Dependencies
from orchestrator.errors import ParleyError
from orchestrator.telemetry import Signal
from orchestrator.turns.event import Event
from orchestrator.turns.lease import TurnCommit, Utterance
from orchestrator.turns.plan import PlanRecord, PlanRevision
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import JsonObject, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryLiveEvents, MemoryWakeup
from parley.testing.store import MemoryStore
from tests.contract.factories import claim
from tests.contract.in_memory.sessions import MemorySessions
from tests.unit.gateway.memory_dependencies import make_dependencies, serve

PROBLEM = "application/problem+json"


class House:
    """A gateway over an in-memory store, with a worker that answers turns."""

    def __init__(self, *, session_limit: int = 100) -> None:
        self.store = store = MemoryStore()
        self.live = MemoryLiveEvents()
        self.wakeup = MemoryWakeup()
        self.lane = MemoryLane(store)
        self.inbox = MemoryInbox(store, session_limit=session_limit)
        self.sessions = MemorySessions(store)
        self.missing: dict[str, str] = {}
        self.signals: list[Signal] = []
        self.http: httpx.AsyncClient

    async def probe(self) -> dict[str, str]:
        return self.missing

    def dependencies(self) -> Dependencies:
        return make_dependencies(
            self.store,
            inbox=self.inbox,
            sessions=self.sessions,
            wakeup=self.wakeup,
            live=self.live,
            probe=self.probe,
            record_signal=self.signals.append,
        )

    async def session(self, **body: object) -> str:
        answer = await self.http.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["session_id"]

    async def submit(self, session_id: str, text: str = "Hello", **body: object) -> httpx.Response:
        return await self.http.post(f"/v1/sessions/{session_id}/turns", json={"text": text, **body})

    async def answer(self, session_id: str, reply: str, **more: Any) -> None:
        """Answer the session's next turn, as a worker would."""
        lease = await claim(self.lane, SessionId(session_id))
        state = orjson.dumps({"turns": lease.work.seq})
        done = TurnCommit(
            status=TurnStatus.DONE,
            state=state,
            diff=b"{}",
            snapshot=True,
            result={"reply": reply, "epoch": lease.epoch + 1},
            utterances=(Utterance("user", "text", "Hello"), Utterance("agent", "text", reply)),
            events=(Event(lease.session_id, "answer", lease.work.turn_id),),
            **more,
        )
        committed = await self.lane.commit(lease, done)
        await self.live.publish(lease.session_id, committed.events)


@asynccontextmanager
async def open_house(**options: int) -> AsyncIterator[House]:
    house = House(**options)
    async with serve(house.dependencies()) as (_, house.http):
        yield house


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as house:
        yield house


def problem(answer: httpx.Response, status: int, code: str) -> JsonObject:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == PROBLEM
    body = answer.json()
    assert body["code"] == code
    assert body["status"] == status
    assert body["detail"]
    return body


async def test_a_turn_is_accepted_with_its_place_and_a_wake_up_is_left(house: House) -> None:
    """RT-1: the turn is stored before the hint."""
    session = await house.session()

    first = await house.submit(session)
    second = await house.submit(session)

    assert first.status_code == 202
    assert set(first.json()) == {"turn_id", "seq", "status", "position"}
    assert [(r.json()["seq"], r.json()["position"], r.json()["status"]) for r in (first, second)] == [
        (1, 0, "queued"),
        (2, 1, "queued"),
    ]
    assert await house.wakeup.take(limit=5, timeout_s=0) == [session]


async def test_waiting_answers_with_the_turn_object_once_it_has_finished(house: House) -> None:
    session = await house.session()
    turn_id = (await house.submit(session)).json()["turn_id"]
    await house.answer(session, "Good day")

    answer = await house.http.get(f"/v1/turns/{turn_id}", params={"wait": 5})

    assert answer.status_code == 200
    turn = answer.json()
    assert (turn["status"], turn["epoch"]) == ("done", 1)
    assert (turn["text"], turn["reply"]) == ("Hello", "Good day")
    wanted = "flows completed tools frame actions ambiguity flags duration_ms seq session_id turn_id"
    assert set(wanted.split()) <= set(turn)


async def test_a_wait_that_runs_out_says_that_the_turn_is_still_queued(house: House) -> None:
    session = await house.session()
    answer = await house.http.post(
        f"/v1/sessions/{session}/turns", params={"wait": 0}, json={"text": "Hi there"}
    )
    assert answer.status_code == 202
    assert answer.json()["status"] == "queued"
    assert answer.json()["reply"] is None


async def test_the_same_key_gives_the_same_turn_by_header_and_by_body(house: House) -> None:
    """RT-5"""
    session = await house.session()
    path = f"/v1/sessions/{session}/turns"
    by_header = await house.http.post(path, json={"text": "Hi there"}, headers={"Idempotency-Key": "k1"})
    by_body = await house.submit(session, "Hi there", idempotency_key="k1")
    both = await house.http.post(
        path, json={"text": "Hi", "idempotency_key": "a"}, headers={"Idempotency-Key": "b"}
    )

    assert by_header.json()["turn_id"] == by_body.json()["turn_id"]
    assert problem(both, 409, "refused")


async def test_malformed_input_is_refused_and_names_the_field(house: House) -> None:
    """RT-23: one problem per mistake, and nothing is stored."""
    session = await house.session()
    path = f"/v1/sessions/{session}/turns"
    for body, field in (
        ({}, "body"),
        ({"text": "a", "action": {"name": "yes"}}, "body"),
        ({"text": "   "}, "text"),
        ({"text": "a\x00b"}, "text"),
        ({"text": 7}, "text"),
        ({"action": {"payload": 1}}, "action.name"),
        ({"text": "a", "sequence": 0}, "sequence"),
        ({"text": "a", "if_busy": "shout"}, "if_busy"),
        ({"text": "a", "txet": "b"}, "txet"),
    ):
        answer = await house.http.post(path, json=body)
        assert problem(answer, 422, "invalid_input")["field"] == field
    for raw in (b'{"text": "caf\xe9"}', b"{", b"[1]", b""):
        answer = await house.http.post(path, content=raw, headers={"Content-Type": "application/json"})
        problem(answer, 422, "invalid_input")
    assert (await house.http.get("/v1/turns")).json() == []


async def test_what_is_not_there_is_404(house: House) -> None:
    for call in (
        "/v1/sessions/none",
        "/v1/turns/none",
        "/v1/sessions/none/history",
        "/v1/sessions/none/state",
    ):
        problem(await house.http.get(call), 404, "not_found")
    problem(await house.submit("none"), 404, "not_found")
    problem(await house.http.get("/v1/nowhere"), 404, "not_found")


async def test_an_unknown_domain_is_refused_by_name_and_a_path_is_no_domain(house: House) -> None:
    for name in ("atlantis", "/etc", "../travel", "travel/"):
        answer = await house.http.post("/v1/sessions", json={"domain": name})
        body = problem(answer, 422, "invalid_input")
        assert body["field"] == "domain"
        assert "travel" in body["detail"]


async def test_a_full_inbox_says_when_to_try_again() -> None:
    async with open_house(session_limit=1) as house:
        session = await house.session()
        await house.submit(session)
        refused = await house.submit(session)
        problem(refused, 429, "inbox_full")
        assert int(refused.headers["Retry-After"]) >= 1


async def test_a_busy_session_under_reject_is_409_and_so_is_a_closed_one(house: House) -> None:
    session = await house.session(if_busy="reject")
    await house.submit(session)
    problem(await house.submit(session), 409, "session_busy")

    closed = await house.http.delete(f"/v1/sessions/{session}")
    assert closed.json()["status"] == "closed"
    problem(await house.submit(session), 409, "session_closed")


async def test_history_state_and_rollback(house: House) -> None:
    """ST-2"""
    session = await house.session()
    for reply in ("one", "two"):
        await house.submit(session)
        await house.answer(session, reply)

    history = (await house.http.get(f"/v1/sessions/{session}/history")).json()
    early = (await house.http.get(f"/v1/sessions/{session}/state", params={"epoch": 1})).json()
    back = await house.http.post(f"/v1/sessions/{session}/rollback", json={"epoch": 1})
    now = (await house.http.get(f"/v1/sessions/{session}/state")).json()

    assert [line["content"] for line in history] == ["Hello", "one", "Hello", "two"]
    assert early == {"epoch": 1, "state": {"turns": 1}}
    assert back.json()["epoch"] == 3
    assert now == {"epoch": 3, "state": {"turns": 1}}
    problem(await house.http.post(f"/v1/sessions/{session}/rollback", json={"epoch": 9}), 404, "not_found")


async def test_a_plan_with_its_revisions_can_be_read(house: House) -> None:
    """PL-6: sessions without a plan return none."""
    session = await house.session()
    problem(await house.http.get(f"/v1/sessions/{session}/plan"), 404, "not_found")
    await house.submit(session)
    await house.answer(
        session,
        "one",
        plans=(PlanRecord("flow_p", "plan_trip", "a trip", "Completed", None, 2, {"progress": "2 of 2"}),),
        plan_revisions=(PlanRevision("flow_p", 1, "decomposed", "", {"progress": "0 of 2"}),),
    )
    plan = (await house.http.get(f"/v1/sessions/{session}/plan")).json()
    assert (plan["plan_id"], plan["dact"], plan["progress"]) == ("flow_p", "plan_trip", "2 of 2")
    assert [(r["outcome"], r["progress"]) for r in plan["revisions"]] == [("decomposed", "0 of 2")]


async def test_a_queued_turn_can_be_cancelled_and_listed(house: House) -> None:
    session = await house.session()
    turn_id = (await house.submit(session)).json()["turn_id"]
    cancelled = await house.http.post(f"/v1/turns/{turn_id}/cancel")
    assert cancelled.json()["status"] == "cancelled"
    listed = (await house.http.get("/v1/turns", params={"status": "cancelled"})).json()
    assert [turn["turn_id"] for turn in listed] == [turn_id]


async def test_readiness_names_what_is_missing(house: House) -> None:
    assert (await house.http.get("/health/live")).json() == {"status": "live"}
    assert (await house.http.get("/health/ready")).status_code == 200
    house.missing = {"redis": "does not answer"}
    assert "redis" in problem(await house.http.get("/health/ready"), 503, "unavailable")["detail"]


async def test_a_surprise_is_a_problem_without_its_secrets(house: House) -> None:
    """AG-4: the response reveals no internals."""

    async def broken(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("password=hunter2")

    house.sessions.list = broken
    answer = await house.http.get("/v1/sessions")
    assert "hunter2" not in answer.text
    problem(answer, 500, ParleyError.code)
