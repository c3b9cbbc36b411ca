"""The gateway's answers to stolen tickets, foreign web pages, unknown tokens and invalid bodies (RT-22, RT-23)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import jwt
import pytest
import uvicorn
import websockets
from fastapi.routing import APIRoute

from gateway import protocol
from gateway.app import Exposure
from gateway.auth.authentication import Rates
from gateway.auth.rate_limits import FAILURES_AT_ONCE
from gateway.auth.tokens import Tokens
from gateway.guard import BY_TICKET
from gateway.middleware import body_limit
from gateway.middleware.hosts import LOOPBACK_HOSTS
from orchestrator.telemetry.metrics import LISTENERS
from tests.cases import for_each
from tests.integration.gateway import run_server
from tests.unit.gateway.guarded import GuardedHouse, guarded_house
from tests.unit.gateway.test_access import open_socket

SECRET = "s" * 32
NOW = int(time.time())
SOUND: dict[str, Any] = {"exp": NOW + 600, "aud": "parley", "iss": "them", "sub": "ann", "tenant": "acme"}


def refused(answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


# Tickets


async def ticket_of(house: GuardedHouse, key: str) -> str:
    return (await house.ask(key, "POST", "/v1/tickets")).json()["ticket"]


async def test_a_ticket_opens_events_and_sockets_and_no_other_call() -> None:
    async with guarded_house() as house:
        key = await house.key(operator=True)
        session = await house.session(key)
        ticket = await ticket_of(house, key)
        routes = [
            (method, route.path)
            for route in house.app.routes
            if isinstance(route, APIRoute) and route.path.startswith("/v1/")
            for method in sorted(route.methods or ())
        ]
        for method, path in routes:
            place = path.format_map(
                dict.fromkeys(("session_id", "turn_id", "run_id", "user_id"), session) | Names()
            )
            answer = await house.ask(None, method, f"{place}?access_token={ticket}&follow=false")
            if (method, path) in BY_TICKET:
                assert answer.status_code == 200, path
            else:
                assert answer.status_code in {401, 429}, (method, path)
        assert (
            await open_socket(house, f"/v1/sessions/{session}/ws", f"access_token={ticket}")
            == "websocket.accept"
        )


class Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "x"


async def test_a_ticket_ends_with_the_token_that_it_was_given_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens({None: (SECRET, "HS256")}, "parley", "them")
    async with guarded_house(tokens=tokens) as house:
        now = int(time.time())
        token = make_token(exp=now - 20)  # within the tolerance for different clocks, but not longer
        session = await house.session(token)
        answer = (await house.ask(token, "POST", "/v1/tickets")).json()
        assert answer["expires_in"] <= 11
        place = f"/v1/sessions/{session}/events?follow=false&access_token={answer['ticket']}"
        assert (await house.ask(None, "GET", place)).status_code == 200

        monkeypatch.setattr(time, "time", lambda: now + 60.0)

        refused(await house.ask(None, "GET", place), 401, "unauthenticated")


# Tokens and keys


def make_token(**claims: Any) -> str:
    return jwt.encode({**SOUND, **claims}, SECRET, "HS256")


ODD_CLAIMS: list[dict[str, Any]] = [
    *({"exp": odd} for odd in ("soon", "9" * 400, [1], {}, True, -1)),
    *({"sub": odd} for odd in (7, None, [], "a b", "x" * 200)),
    *({"tenant": odd} for odd in (7, None, {}, "../x")),
    *({"scope": odd} for odd in (7, {"a": 1})),
    *({"aud": odd} for odd in (7, [7], {})),
    *({"iss": odd} for odd in (7, ["them", "us"], None)),
    {"nbf": "soon"},
    {"iat": "long ago"},
]


@for_each("claims", ODD_CLAIMS, ids=str)
async def test_a_token_with_odd_claims_is_refused_and_breaks_nothing(claims: dict[str, Any]) -> None:
    tokens = Tokens({None: (SECRET, "HS256")}, "parley", "them")
    payload = jwt.api_jws.encode(json.dumps({**SOUND, **claims}).encode(), SECRET, "HS256")

    async with guarded_house(tokens=tokens) as house:
        answer = await house.ask(payload, "GET", "/v1/whoami")

    refused(answer, 401, "unauthenticated")


async def test_guessing_keys_is_slowed_down_and_right_ones_still_work() -> None:
    async with guarded_house() as house:
        key = await house.key()
        answers = [
            await house.ask(f"parley_{number}_guess", "GET", "/v1/whoami")
            for number in range(FAILURES_AT_ONCE + 5)
        ]

        assert {answer.status_code for answer in answers[:FAILURES_AT_ONCE]} == {401}
        refused(answers[-1], 429, "too_many_requests")
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert (await house.ask(key, "GET", "/v1/whoami")).status_code == 200


# Pages of other origins


@asynccontextmanager
async def open_house(**exposure: Any) -> AsyncIterator[GuardedHouse]:
    async with guarded_house(rates=Rates(), exposure=Exposure(hosts=LOOPBACK_HOSTS, **exposure)) as house:
        house.access.required = False
        yield house


OWN = {"Host": "localhost:8600"}
ELSEWHERE = [
    *("http://localhost:3000", "https://localhost:8600", "http://127.0.0.1:8600", "http://localhost", "null"),
    *("http://localhost:8600.evil.example", "http://evil.example", "file://", "http://[::1]:8600", ""),
]


@for_each("origin", ELSEWHERE)
async def test_a_page_of_another_origin_gets_nothing_of_an_open_gateway(origin: str) -> None:
    """Scheme, host and port matter: a page of another program on this machine is foreign."""
    async with open_house() as house:
        headers = {**OWN, "Origin": origin}
        refused(await house.http.get("/v1/sessions", headers=headers), 403, "forbidden")
        refused(await house.http.post("/v1/sessions", headers=headers, json={}), 403, "forbidden")


async def test_the_own_page_and_programs_are_served() -> None:
    async with open_house() as house:
        for headers in (
            OWN,
            {**OWN, "Origin": "http://localhost:8600"},
            {**OWN, "Sec-Fetch-Site": "same-origin"},
        ):
            assert (await house.http.post("/v1/sessions", headers=headers, json={})).status_code == 201


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_what_changes_is_refused_to_a_fetch_from_another_site(site: str) -> None:
    async with open_house() as house:
        headers = {**OWN, "Sec-Fetch-Site": site}
        refused(await house.http.post("/v1/sessions", headers=headers, json={}), 403, "forbidden")
        assert (await house.http.get("/", headers=headers)).status_code == 200  # a link to the inspector


async def test_an_allowed_origin_is_served() -> None:
    async with open_house(cors_origins=("http://localhost:3000",)) as house:
        headers = {**OWN, "Origin": "http://localhost:3000"}
        assert (await house.http.post("/v1/sessions", headers=headers, json={})).status_code == 201


# Bodies


@for_each("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/html"])
async def test_a_body_of_another_type_is_refused(kind: str) -> None:
    """Content types that a page can send without a preflight request change nothing."""
    async with guarded_house() as house:
        key = await house.key()
        session = await house.session(key)
        for path in ("/v1/sessions", f"/v1/sessions/{session}/turns", "/v1/users/ann/preferences"):
            method = "PUT" if "preferences" in path else "POST"
            headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
            answer = await house.http.request(method, path, headers=headers, content=b'{"text": "hello"}')
            refused(answer, 415, "unsupported_media_type")


async def test_a_document_is_taken_as_plain_text_and_as_json_only() -> None:
    async with guarded_house() as house:
        headers = {"Authorization": f"Bearer {await house.key()}"}
        for kind in ("text/plain", "text/markdown; charset=utf-8", "text/html"):
            answer = await house.http.post(
                "/v1/documents", headers={**headers, "Content-Type": kind}, content=kind
            )
            assert (answer.status_code == 415) is (kind == "text/html"), answer.text


@for_each("payload", ['{"\\ud800": 1}', '{"a": {"x\\udfff": []}}', '"\\ud800"', '["\\udc00"]'])
async def test_half_a_character_is_refused_wherever_it_stands(payload: str) -> None:
    async with guarded_house() as house:
        key = await house.key()
        session = await house.session(key)
        body = f'{{"action": {{"name": "x", "payload": {payload}}}}}'
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        answer = await house.http.post(f"/v1/sessions/{session}/turns", headers=headers, content=body)

        refused(answer, 422, "invalid_input")


async def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODY_WITHIN_S", 0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    async with guarded_house() as house:
        headers = {"Authorization": f"Bearer {await house.key()}", "Content-Type": "application/json"}
        answer = await house.http.post("/v1/sessions", headers=headers, content=slow())

    assert answer.status_code == 408


async def test_a_request_with_two_lengths_is_refused() -> None:
    async with guarded_house() as house:
        headers = {"Transfer-Encoding": "chunked", "Content-Length": "2", "Content-Type": "application/json"}
        answer = await house.http.post("/v1/sessions", headers=headers, content=b"{}")

    refused(answer, 422, "invalid_input")


def bounded(house: GuardedHouse) -> uvicorn.Config:
    """Return the configuration of the gateway's program."""
    return uvicorn.Config(house.app, port=0, http=protocol.BoundedProtocol, log_config=None, lifespan="off")


@pytest.mark.parametrize("last", [None, b'{"currentMessage": "hello"}', b"no JSON"])
async def test_a_socket_whose_connection_breaks_is_no_fault(
    last: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A lost connection, such as a phone in a tunnel, causes no log entries."""
    async with guarded_house() as house:
        key = await house.key()
        session = await house.session(key)
        async with run_server(bounded(house)) as port:
            place = f"ws://127.0.0.1:{port}/v1/sessions/{session}/ws"
            client = await websockets.connect(place, additional_headers={"Authorization": f"Bearer {key}"})
            if last is not None:
                await client.send(last)
            # Zero seconds to linger: the connection is reset, not closed.
            resetting = struct.pack("ii", 1, 0)
            plain = client.transport.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, resetting)
            client.transport.abort()
            while LISTENERS.labels("socket")._value.get() > 0:
                await asyncio.sleep(0.01)

    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_headers_that_do_not_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a thousand connections with incomplete headers would occupy a thousand places."""
    monkeypatch.setattr(protocol, "HEADERS_WITHIN_S", 0.2)
    async with guarded_house() as house, run_server(bounded(house)) as port:
        for begun in (b"", b"GET /health/live HT", b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b'live"}')).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_fault_has_the_headers_of_every_answer() -> None:
    async with guarded_house() as house:
        key = await house.key()
        house.app.state.dependencies = None  # as only an internal error would leave it
        answer = await house.ask(key, "GET", "/v1/whoami")

    refused(answer, 500, "internal_error")
    assert "NoneType" not in answer.text
