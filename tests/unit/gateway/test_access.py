"""Access of keys, tenants, users, operators and tickets (RT-22)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from gateway.auth.authentication import LONGEST_STREAM_S, Rates
from orchestrator.turns.access import Scope
from orchestrator.types import TenantId
from tests.cases import for_each
from tests.unit.gateway.guarded import GuardedHouse, guarded_house


def refused(answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


def api_routes(house: GuardedHouse) -> list[tuple[str, str]]:
    described = house.app.openapi()["paths"]
    return [(method.upper(), path) for path, calls in described.items() for method in calls]


async def test_every_call_of_the_api_asks_who_one_is(house: GuardedHouse) -> None:
    calls = [(method, path) for method, path in api_routes(house) if path.startswith("/v1")]
    calls.remove(("GET", "/v1/exports/{token}"))  # signed path, see test_downloads.py
    calls.remove(("POST", "/v1/calls/{reference}"))  # signed path, see test_later_results.py
    assert len(calls) > 20
    for method, path in calls:
        answer = await house.ask(None, method, path.replace("{", "").replace("}", ""), json={})
        refused(answer, 401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_health_is_open(house: GuardedHouse) -> None:
    assert (await house.ask(None, "GET", "/health/live")).status_code == 200
    assert (await house.ask(None, "GET", "/health/ready")).status_code == 200


@for_each(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic dXNlcjpwYXNz",
        "Bearer parley_x_y",
        "Bearer parley__",
        "Bearer parley_" + 10_000 * "a",
        "Bearer a.b.c",
        "bearer parley_\u00e9_\u00e9",
    ],
)
async def test_what_is_no_key_is_refused(house: GuardedHouse, header: str) -> None:
    answer = await house.http.get("/v1/sessions", headers=[(b"Authorization", header.encode("latin-1"))])
    refused(answer, 401, "unauthenticated")


async def test_a_key_with_another_secret_is_refused(house: GuardedHouse) -> None:
    first, second = await house.key(), await house.key()
    mixed = f"{first.rpartition('_')[0]}_{second.split('_', 2)[2]}"
    refused(await house.ask(mixed, "GET", "/v1/sessions"), 401, "unauthenticated")


async def test_revoked_and_expired_keys_are_refused(house: GuardedHouse) -> None:
    revoked, text = await house.keys.create(TenantId("acme"), "old", frozenset({Scope.USER}))
    assert (await house.ask(text, "GET", "/v1/sessions")).status_code == 200
    await house.keys.revoke(revoked.key_id)
    refused(await house.ask(text, "GET", "/v1/sessions"), 401, "unauthenticated")

    ends = house.clock() + timedelta(minutes=5)
    _, text = await house.keys.create(TenantId("acme"), "brief", frozenset({Scope.USER}), expires_at=ends)
    assert (await house.ask(text, "GET", "/v1/sessions")).status_code == 200
    house.clock.advance(301)
    refused(await house.ask(text, "GET", "/v1/sessions"), 401, "unauthenticated")


async def test_a_user_reaches_only_his_sessions(house: GuardedHouse) -> None:
    ann, bob = await house.key(user="ann"), await house.key(user="bob")
    hers, his = await house.session(ann), await house.session(bob)
    turn = await house.turn(ann, hers)

    listed = (await house.ask(ann, "GET", "/v1/sessions")).json()
    assert [(one["session_id"], one["user_id"]) for one in listed] == [(hers, "ann")]
    assert (await house.ask(ann, "GET", f"/v1/turns?session_id={hers}")).json()[0]["turn_id"] == turn
    for method, path in (
        ("GET", f"/v1/sessions/{his}"),
        ("POST", f"/v1/sessions/{his}/turns"),
        ("POST", f"/v1/sessions/{his}/rollback"),
        ("POST", f"/v1/sessions/{his}/branch"),
        ("GET", f"/v1/sessions/{his}/compare?with={hers}"),
        ("GET", f"/v1/sessions/{hers}/compare?with={his}"),
        ("GET", f"/v1/sessions/{his}?at=1"),
        ("GET", f"/v1/turns?session_id={his}"),
        ("GET", f"/v1/approvals?session_id={his}"),
        ("GET", f"/v1/runs?session_id={his}"),
    ):
        refused(await house.ask(ann, method, path, json={"text": "x"}), 404, "not_found")
    refused(await house.ask(bob, "GET", f"/v1/turns/{turn}"), 404, "not_found")
    refused(await house.ask(bob, "GET", "/v1/turns"), 403, "forbidden")
    refused(await house.ask(bob, "POST", "/v1/sessions", json={"user_id": "ann"}), 403, "forbidden")
    refused(await house.ask(bob, "POST", "/v1/sessions", json={"tenant_id": "bolt"}), 403, "forbidden")
    refused(await house.ask(bob, "POST", "/v1/sessions", json={"session_id": hers}), 404, "not_found")
    told = {"webhook": "https://example.com/"}
    refused(await house.ask(bob, "POST", "/v1/sessions", json=told), 403, "forbidden")


async def test_a_user_reaches_what_is_remembered_of_him_alone(house: GuardedHouse) -> None:
    ann = await house.key(user="ann")
    assert (await house.ask(ann, "GET", "/v1/users/ann/preferences")).status_code == 200
    for method, path in (
        ("GET", "/v1/users/bob/preferences"),
        ("PUT", "/v1/users/bob/preferences"),
        ("GET", "/v1/documents?user_id=bob"),
        ("GET", "/v1/documents?user_id=ann&user_id=bob"),
        ("GET", "/v1/documents/search?q=bags&user_id=bob"),
        ("POST", "/v1/documents"),
        ("DELETE", "/v1/documents/doc_1"),
    ):
        refused(await house.ask(ann, method, path, json={}), 403, "forbidden")
    assert (await house.ask(ann, "GET", "/v1/documents?user_id=ann")).status_code == 200
    assert (await house.ask(ann, "GET", "/v1/documents")).status_code == 200


async def test_a_backend_reaches_all_users_and_does_not_operate(house: GuardedHouse) -> None:
    ann, backend, operator = (
        await house.key(user="ann"),
        await house.key(),
        await house.key(operator=True),
    )
    session = await house.session(ann)
    turn = await house.turn(backend, session)

    assert (await house.ask(backend, "GET", f"/v1/sessions/{session}")).status_code == 200
    repairs = f"/v1/sessions/{session}/repairs"
    order = {"repairs": [{"kind": "give_up", "turn": turn}], "epoch": 0, "why": "Nobody waits for it."}
    refused(await house.ask(backend, "POST", repairs, json=order), 403, "forbidden")
    refused(await house.ask(backend, "POST", "/v1/runs", json={"flow": "x"}), 403, "forbidden")
    refused(await house.ask(backend, "GET", "/v1/webhooks"), 403, "forbidden")
    assert (await house.ask(operator, "POST", repairs, json=order)).status_code == 200


async def test_a_route_that_nobody_thought_of_is_closed_to_users(house: GuardedHouse) -> None:
    """New routes must be opened to users explicitly."""

    async def new() -> str:
        return "data"

    house.app.router.routes.insert(0, APIRoute("/v1/new", new, dependencies=house.app.router.dependencies))
    assert (await house.ask(await house.key(), "GET", "/v1/new")).status_code == 200
    refused(await house.ask(await house.key(user="ann"), "GET", "/v1/new"), 403, "forbidden")
    refused(await house.ask(None, "GET", "/v1/new"), 401, "unauthenticated")


async def test_a_socket_asks_who_one_is(house: GuardedHouse) -> None:
    """Browsers cannot send headers with a WebSocket, so a ticket opens it, for its caller's sessions."""
    ann, bob = await house.key(user="ann"), await house.key(user="bob")
    session = await house.session(ann)
    tickets = [(await house.ask(key, "POST", "/v1/tickets")).json()["ticket"] for key in (ann, bob)]
    path = f"/v1/sessions/{session}/ws"
    assert await open_socket(house, path, "") == "websocket.close"
    assert await open_socket(house, path, f"access_token={tickets[1]}") == "websocket.close"
    assert await open_socket(house, path, f"access_token={tickets[0]}") == "websocket.accept"


async def open_socket(house: GuardedHouse, path: str, query: str) -> str:
    """Open a socket, return the gateway's first message, and leave."""
    said: list[str] = []
    heard = iter([{"type": "websocket.connect"}])

    async def receive() -> dict[str, Any]:
        return next(heard, {"type": "websocket.disconnect", "code": 1000})

    async def send(message: dict[str, Any]) -> None:
        said.append(message["type"])

    scope = {"type": "websocket", "path": path, "raw_path": path.encode(), "root_path": "", "scheme": "ws"}
    more = {"query_string": query.encode(), "headers": [(b"host", b"gateway")], "subprotocols": []}
    await house.app({**scope, **more, "app": house.app, "state": {}}, receive, send)
    return said[0]


async def test_one_can_ask_who_one_is(house: GuardedHouse) -> None:
    answer = (await house.ask(await house.key(user="ann"), "GET", "/v1/whoami")).json()
    assert answer == {
        "tenant_id": "acme",
        "user_id": "ann",
        "name": "acme's",
        "scopes": ["user"],
        "known": True,
    }


async def test_a_ticket_stands_for_its_caller_for_a_minute(house: GuardedHouse) -> None:
    key = await house.key(user="ann")
    session = await house.session(key)
    ticket = (await house.ask(key, "POST", "/v1/tickets")).json()["ticket"]
    place = f"/v1/sessions/{session}/events?follow=false&access_token={ticket}"

    assert (await house.ask(None, "GET", place)).status_code == 200
    other = await house.session(await house.key(user="bob"))
    elsewhere = place.replace(session, other)
    refused(await house.ask(None, "GET", elsewhere), 404, "not_found")
    house.clock.advance(61)
    refused(await house.ask(None, "GET", place), 401, "unauthenticated")


async def test_an_event_source_comes_back_after_its_ticket_ran_out(house: GuardedHouse) -> None:
    """The client requests the same URL again.

    The ticket opens nothing else, and nothing at all after half a day.
    """
    key = await house.key(user="ann")
    session = await house.session(key)
    other = await house.session(key)
    ticket = (await house.ask(key, "POST", "/v1/tickets")).json()["ticket"]

    def place(of: str, *, follow: bool) -> str:
        return f"/v1/sessions/{of}/events?follow={str(follow).lower()}&access_token={ticket}"

    await open_stream(house, place(session, follow=True))
    for _ in range(5):  # disconnected every nine minutes
        house.clock.advance(540)
        assert (await open_stream(house, place(session, follow=True))) == 200
    refused(await house.ask(None, "GET", place(other, follow=False)), 401, "unauthenticated")
    socket = f"/v1/sessions/{session}/ws"
    assert await open_socket(house, socket, f"access_token={ticket}") == "websocket.close"
    house.clock.advance(601)
    refused(await house.ask(None, "GET", place(session, follow=False)), 401, "unauthenticated")


async def test_a_kept_ticket_ends_with_its_key_and_after_half_a_day(
    house: GuardedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, key = await house.keys.create(TenantId("acme"), "one", frozenset({Scope.USER}))
    session = await house.session(key)
    tickets = [(await house.ask(key, "POST", "/v1/tickets")).json()["ticket"] for _ in range(2)]
    places = [f"/v1/sessions/{session}/events?access_token={ticket}" for ticket in tickets]
    assert [await open_stream(house, place) for place in places] == [200, 200]
    house.clock.advance(61)
    with monkeypatch.context() as later:
        now = time.time()
        later.setattr(time, "time", lambda: now + LONGEST_STREAM_S + 1)
        assert await open_stream(house, places[0]) == 401
    assert await open_stream(house, places[1]) == 200

    await house.keys.revoke(made.key_id)

    assert await open_stream(house, places[1]) == 401


async def open_stream(house: GuardedHouse, address: str) -> int:
    """Open an event stream, leave once it has begun, and return its status."""
    path, _, query = address.partition("?")
    status: list[int] = []
    begun = asyncio.Event()
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        if (message := next(asked, None)) is not None:
            return message
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])
        elif message["type"] == "http.response.body":
            begun.set()

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": ""}
    more = {"scheme": "http", "query_string": query.encode(), "headers": [(b"host", b"gateway")]}
    await house.app({**scope, **more, "http_version": "1.1", "app": house.app, "state": {}}, receive, send)
    return status[0]


async def test_a_key_in_the_address_is_not_accepted(house: GuardedHouse) -> None:
    """URLs end up in logs and histories."""
    key = await house.key()
    refused(await house.ask(None, "GET", f"/v1/sessions?access_token={key}"), 401, "unauthenticated")


async def test_feedback_is_of_who_gives_it(house: GuardedHouse) -> None:
    """Users cannot write as another author. Backends name the author, or are the author."""
    backend, hers = await house.key(), await house.key(user="ann")
    session = await house.session(backend, user_id="ann")
    path = f"/v1/turns/{await house.turn(backend, session)}/feedback"
    authors = [
        (await house.ask(key, "POST", path, json={"rating": "up", "author": claimed})).json()["author"]
        for key, claimed in ((hers, "bob"), (hers, None), (backend, "bob"), (backend, None))
    ]
    assert authors == ["ann", "ann", "bob", "acme's"]


async def test_what_lasts_long_is_asked_again_whether_it_may(house: GuardedHouse) -> None:
    """A key lasts until its revocation, a token until it expires. If the check fails, admitted callers stay."""
    key, _ = await house.keys.create(TenantId("acme"), "shop", frozenset({Scope.USER}))
    assert await house.access.holds(key.caller())
    await house.keys.revoke(key.key_id)
    assert not await house.access.holds(key.caller())
    token = replace(key.caller(), credential="token:ann")
    assert await house.access.holds(replace(token, expires_at=time.time() + 60))
    assert not await house.access.holds(replace(token, expires_at=time.time() - 1))


async def test_a_user_with_several_keys_has_one_limit() -> None:
    async with guarded_house(rates=Rates(caller=12)) as house:
        first, second = await house.key(user="ada"), await house.key(user="ada")
        bob, theirs = await house.key(user="bob"), await house.key("bolt", user="ada")
        for key, code in (
            (first, 200),
            (second, 200),
            (first, 429),
            (second, 429),
            (bob, 200),
            (theirs, 200),
        ):
            assert (await house.ask(key, "GET", "/v1/sessions")).status_code == code
