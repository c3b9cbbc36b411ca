"""Events over HTTP on real stores: resumable, without gaps, with or without Redis (RT-15)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson
import pytest
import websockets
from structlog.testing import capture_logs

from gateway.routes.socket import TRY_AGAIN_LATER
from orchestrator.adapters.event_feed import EventFeed
from orchestrator.turns.access import Scope
from orchestrator.turns.event import Event
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.integration.gateway import House, open_house


class Stream:
    """A client of server-sent events that reads line by line."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def __anext__(self) -> dict[str, Any]:
        """Return the next event, with its `id` if any."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            if not line and "data" in fields:
                body = orjson.loads(fields["data"])
                assert body["type"] == fields["event"]
                assert fields.get("id") == (None if body["number"] is None else str(body["number"]))
                return body
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        raise StopAsyncIteration

    def __aiter__(self) -> Stream:
        return self


def token(session: SessionId, turn_id: Any, offset: int, text: str) -> Event:
    return Event(session, "token", turn_id, {"text": text, "offset": offset})


@asynccontextmanager
async def heard(house: House, session: SessionId, **request: Any) -> AsyncIterator[Stream]:
    """Open the session's stream of events."""
    async with house.http.stream("GET", f"/v1/sessions/{session}/events", **request) as response:
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield Stream(response)


async def read_log(house: House, session: SessionId, **request: Any) -> list[int]:
    async with heard(house, session, **request) as stream:
        return [event["number"] async for event in stream]


async def test_the_log_is_read_from_any_number_on(house: House) -> None:
    session = await house.session()
    for _ in range(3):
        await house.submit(session)
        await house.answer(session)

    whole = await read_log(house, session, params={"follow": "false"})
    assert whole == list(range(1, 10))
    assert await read_log(house, session, params={"follow": "false", "after": 7}) == [8, 9]
    seen = {"Last-Event-ID": "8"}
    assert await read_log(house, session, params={"follow": "false", "after": 2}, headers=seen) == [9]


async def test_events_are_told_as_they_happen(house: House) -> None:
    session = await house.session()
    async with heard(house, session) as stream:
        turn_id = await house.submit(session)
        await house.ports.shared.wakeup.offer(session)
        accepted = await anext(stream)
        assert datetime.fromisoformat(accepted.pop("at")) <= datetime.now(UTC) + timedelta(minutes=1)
        assert accepted == {
            "type": "accepted",
            "turn_id": turn_id,
            "payload": {"seq": 1, "position": 0},
            "number": 1,
        }
        lease = await house.claim(session)
        await house.ports.shared.live.publish(session, (token(session, lease.work.turn_id, 0, "Hel"),))
        assert await anext(stream) == {
            "type": "token",
            "turn_id": turn_id,
            "payload": {"text": "Hel", "offset": 0},
            "number": None,
        }
        await house.lane.abandon(lease)
        await house.answer(session)
        told = [await anext(stream), await anext(stream)]
    assert [(event["type"], event["number"]) for event in told] == [("started", 2), ("answer", 3)]


async def test_an_unexpected_error_ends_the_socket_and_is_logged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("follow")

    session = await house.session()
    monkeypatch.setattr(EventFeed, "follow", fail)
    with capture_logs() as logs:
        async with house.socket(session) as socket:
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await socket.recv()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == TRY_AGAIN_LATER
    assert [(line["event"], line["session"]) for line in logs if line["log_level"] == "error"] == [
        ("A socket failed.", session)
    ]


async def test_a_page_that_comes_back_gets_the_text_so_far(house: House) -> None:
    session = await house.session()
    await house.submit(session)
    lease = await house.claim(session)
    turn_id = lease.work.turn_id
    for offset, text in ((0, "Three "), (6, "flights "), (14, "fit")):
        await house.ports.shared.live.publish(session, (token(session, turn_id, offset, text),))

    async with heard(house, session, headers={"Last-Event-ID": "1"}) as stream:
        assert (await anext(stream))["payload"] == {"text": "Three flights fit", "offset": 0}
        await house.ports.shared.live.publish(session, (token(session, turn_id, 17, "."),))
        assert (await anext(stream))["payload"] == {"text": ".", "offset": 17}


async def test_what_a_dead_worker_left_is_not_shown_after_its_turn(house: House) -> None:
    """Another worker without the streamed text ended the turn."""
    session = await house.session()
    turn_id = await house.submit(session)
    await house.ports.shared.live.publish(session, (token(session, turn_id, 0, "left over"),))
    await house.http.post(f"/v1/turns/{turn_id}/cancel")

    async with heard(house, session, params={"after": 2}) as stream:
        await house.submit(session)
        assert (await anext(stream))["type"] == "accepted"


async def test_without_live_events_the_log_is_looked_at(house: House) -> None:
    """Without publishers, a follower still receives events soon."""
    session = await house.session()
    async with heard(house, session) as stream:
        await house.submit(session)
        assert (await anext(stream))["number"] == 1


async def test_a_session_that_is_not_there_has_no_events(house: House) -> None:
    answer = await house.http.get("/v1/sessions/nowhere/events")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
    session = await house.session()
    answer = await house.http.get(f"/v1/sessions/{session}/events", headers={"Last-Event-ID": "last"})
    assert answer.status_code == 422


async def test_an_empty_number_is_none(house: House) -> None:
    """An EventSource that was cut off before the first event may send an empty header."""
    session = await house.session()
    await house.submit(session)
    for headers in ({"Last-Event-ID": ""}, {}):
        assert await read_log(house, session, params={"follow": "false"}, headers=headers) == [1]
        later = {"follow": "false", "after": "1"}
        assert await read_log(house, session, params=later, headers=headers) == []


async def test_a_message_of_a_socket_may_name_a_rule_and_is_told_its_place(house: House) -> None:
    """RT-5: over every interface; a waiting turn reports the number of turns before it."""
    session = await house.session()
    async with house.socket(session) as socket:
        await socket.send(json.dumps({"currentMessage": "first"}))
        while not await house.ports.stores.inbox.turns(DEFAULT_TENANT, session_id=session):
            await asyncio.sleep(0.01)
        told = []
        for rule in ("reject", "enqueue", "understand", "sometimes"):
            await socket.send(json.dumps({"currentMessage": rule, "if_busy": rule}))
            told.append(json.loads(await socket.recv()))

    assert [message["type"] for message in told] == ["error", "queued", "queued", "error"]
    assert [message["error"]["code"] for message in (told[0], told[3])] == ["session_busy", "invalid_input"]
    assert told[3]["error"]["field"] == "if_busy"
    assert [message["position"] for message in told[1:3]] == [1, 2]
    (third, second, _) = await house.ports.stores.inbox.turns(DEFAULT_TENANT, session_id=session)
    assert [message["turn_id"] for message in told[1:3]] == [second.turn_id, third.turn_id]
    accepted = [event.payload["position"] for event in await house.logged(session)]
    assert accepted == [0, 1, 2]


async def test_a_conversation_over_a_socket(house: House) -> None:
    """Several turns over one socket; an invalid message only causes an error."""
    session = await house.session()
    async with house.socket(session) as socket:
        for wrong, field in (
            ("no JSON", "body"),
            ('{"currentMessage": " "}', "currentMessage"),
            ("{}", "body"),
            ('{"currentMessage": "hi", "conversation_id": "other"}', "conversation_id"),
            ('{"currentMessage": "hi", "color": "red"}', "color"),
        ):
            await socket.send(wrong)
            told = orjson.loads(await socket.recv())
            assert (told["type"], told["error"]["field"]) == ("error", field)
            assert told["error"]["code"] == "invalid_input"
        for text in ("hello", "again"):
            await socket.send(orjson.dumps({"currentMessage": text, "conversation_id": session}).decode())
            await accepted(house, session, text)
            await house.answer(session)
            told = orjson.loads(await socket.recv())
            assert told["type"] == "text"
            assert told["text"] == f"you said {text}"
            assert told["error"] is None
            assert told["options"] == []
            assert told["conversation_id"] == session
        await socket.send('{"lastAction": {"name": "help"}, "dialogueAct": "book_flight"}')
        await accepted(house, session, None)
        await socket.send('{"dialogueAct": "book_flight"}')
        turns = [await house.claim(session)]
        await house.lane.abandon(turns[0])
    assert turns[0].work.input.action == {"name": "help", "payload": None}


async def accepted(house: House, session: SessionId, text: str | None) -> None:
    """Wait until the inbox has a waiting turn with this text."""
    while True:
        answer = await house.http.get("/v1/turns", params={"session_id": session, "status": "queued"})
        if any(turn["text"] == text for turn in answer.json()):
            return


async def test_a_socket_tells_of_pieces_and_of_what_was_missed(house: House) -> None:
    session = await house.session()
    await house.submit(session)
    await house.answer(session)
    async with house.socket(session, "?after=1") as socket:
        missed = orjson.loads(await socket.recv())
        assert (missed["text"], missed["number"]) == ("you said hello", 3)
        turn_id = await house.submit(session, "stream")
        await house.ports.shared.live.publish(session, (token(session, turn_id, 0, "you"),))
        piece = orjson.loads(await socket.recv())
        assert (piece["type"], piece["token"], piece["offset"]) == ("token", "you", 0)


async def test_a_revoked_key_listens_no_longer(database_url: str, redis_url: str) -> None:
    """RT-22: connections opened with a key end soon after its revocation, without further events."""
    async with open_house(database_url, redis_url, auth="required", recheck_every_s=0.1) as house:
        key, text = await house.ports.stores.keys.create(DEFAULT_TENANT, "shop", frozenset({Scope.USER}))
        headers = {"Authorization": f"Bearer {text}"}
        made = await house.http.post("/v1/sessions", json={"domain": "travel"}, headers=headers)
        session = SessionId(made.json()["session_id"])
        ticket = (await house.http.post("/v1/tickets", headers=headers)).json()["ticket"]
        async with (
            heard(house, session, headers=headers) as by_key,
            heard(house, session, params={"access_token": ticket}) as by_ticket,
            house.socket(session, additional_headers=headers) as socket,
        ):
            streams = [by_key, by_ticket]
            await house.submit(session)
            assert [(await anext(stream))["number"] for stream in streams] == [1, 1]
            await house.ports.stores.keys.revoke(key.key_id)
            assert [[event async for event in stream] for stream in streams] == [[], []]
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


async def test_no_answer_lasts_longer_than_the_gateway_lets_one(database_url: str, redis_url: str) -> None:
    """RT-15: a wait ends before the requested time; a stream ends, and continues when it is opened again."""
    async with open_house(database_url, redis_url, longest_response_s=0.2) as house:
        session = await house.session()
        turn = await house.submit(session)
        waited = await house.http.get(f"/v1/turns/{turn}?wait=300")
        assert (waited.status_code, waited.json()["status"]) == (202, "queued")

        assert await read_log(house, session) == [1]
        await house.answer(session)
        assert (await read_log(house, session, headers={"Last-Event-ID": "1"}))[0] == 2


async def test_a_socket_of_no_session_is_closed(house: House) -> None:
    async with house.socket("nowhere") as socket:
        assert orjson.loads(await socket.recv())["error"]["code"] == "not_found"
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4404
