"""The same validation of submissions in all interfaces: the same result and message."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import websockets

from gateway.app import create_app
from gateway.dependencies import Dependencies
from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.errors import InvalidInput, ParleyError
from orchestrator.turns.submission import MAX_INPUT_BYTES
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.store import MemoryStore
from parley_client import AsyncClient, Client
from tests.integration.gateway import serve
from tests.processes.forked import run
from tests.unit.gateway.memory_dependencies import make_dependencies
from workers.messages.refusal import TaskRefused
from workers.submission import parse_request

Fields = dict[str, Any]


class Verdict(NamedTuple):
    """A validation result. `code`: None if the turn was accepted."""

    code: str | None
    field: str = ""
    message: str = ""


ACCEPTED = Verdict(None)
TOO_LARGE = Verdict(
    "input_too_large", "body", f"A request can have at most {MAX_INPUT_BYTES} bytes; send a shorter text."
)
TOO_DEEP = Verdict("invalid_input", "body", "Lists and objects can be nested at most 64 levels deep.")


def wrong(field: str, message: str) -> Verdict:
    return Verdict("invalid_input", field, f"{field}: {message}.")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


EMPTY = "is empty; send the user's message"
NUL = "contains a NUL character, which can't be stored; remove it"
IDENTIFIER = "String should match pattern '^[A-Za-z0-9][A-Za-z0-9._:@-]*$'"

CASES: dict[str, tuple[Fields, Verdict]] = {
    "text": ({"text": "Hello"}, ACCEPTED),
    "padded text": ({"text": "  Hello\n"}, ACCEPTED),
    "long text": ({"text": "x" * (MAX_INPUT_BYTES - 1024)}, ACCEPTED),
    "action": ({"action": {"name": "choose", "payload": {"row": 3}}}, ACCEPTED),
    "action without payload": ({"action": {"name": "yes"}}, ACCEPTED),
    "more than 64 bits": ({"action": {"name": "choose", "payload": 2**70}}, ACCEPTED),
    "deep enough": ({"action": {"name": "choose", "payload": nested(60)}}, ACCEPTED),
    "key": ({"text": "Hello", "idempotency_key": "k" * 255}, ACCEPTED),
    "sequence and rule": ({"text": "Hello", "sequence": 1, "if_busy": "reject"}, ACCEPTED),
    "to be understood": ({"text": "Hello", "if_busy": "understand"}, ACCEPTED),
    "place": ({"text": "Hello", "timezone": "Pacific/Auckland", "locale": "en-NZ"}, ACCEPTED),
    "locale of a system": ({"text": "Hello", "locale": "de_de"}, ACCEPTED),
    "no zone": (
        {"text": "Hello", "timezone": "Europe/Atlantis"},
        wrong("timezone", "is not a time zone; use an IANA name such as Europe/Berlin"),
    ),
    "no locale": (
        {"text": "Hello", "locale": "xx-YY"},
        wrong("locale", "is not a locale; use a language tag such as en-GB or de-DE"),
    ),
    "spoken": ({"text": "Hello", "form": "speech"}, ACCEPTED),
    "nothing": ({}, wrong("body", "requires either text or action")),
    "both": ({"text": "a", "action": {"name": "b"}}, wrong("body", "requires either text or action")),
    "empty": ({"text": ""}, wrong("text", EMPTY)),
    "whitespace": ({"text": " \n\t "}, wrong("text", EMPTY)),
    "NUL": ({"text": "a\x00b"}, wrong("text", NUL)),
    "number": ({"text": 7}, wrong("text", "Input should be a valid string")),
    "nameless action": ({"action": {"payload": 1}}, wrong("action.name", "Field required")),
    "bad name": ({"action": {"name": "a b"}}, wrong("action.name", IDENTIFIER)),
    "unknown in action": (
        {"action": {"name": "a", "colour": "red"}},
        wrong("action.colour", "Extra inputs are not permitted"),
    ),
    "not a number": (
        {"action": {"name": "a", "payload": [float("nan")]}},
        wrong("action.payload", "contains NaN or infinity, which JSON does not support"),
    ),
    "too large a number": (
        {"action": {"name": "a", "payload": 10**400}},
        wrong("action.payload", "contains a number that is too large"),
    ),
    "empty key": (
        {"text": "a", "idempotency_key": ""},
        wrong("idempotency_key", "String should have at least 1 character"),
    ),
    "long key": (
        {"text": "a", "idempotency_key": "k" * 256},
        wrong("idempotency_key", "String should have at most 255 characters"),
    ),
    "key with NUL": (
        {"text": "a", "idempotency_key": "k\x00"},
        wrong("idempotency_key", "String should match pattern '^[^\\x00]*$'"),
    ),
    "sequence": (
        {"text": "a", "sequence": 0},
        wrong("sequence", "Input should be greater than or equal to 1"),
    ),
    "rule": (
        {"text": "a", "if_busy": "hurry"},
        wrong("if_busy", "Input should be 'enqueue', 'reject', 'interrupt', 'rollback' or 'understand'"),
    ),
    "form": (
        {"text": "a", "form": "smoke"},
        wrong("form", "String should match pattern '^(text|speech|image|action)$'"),
    ),
    "misspelt": ({"text": "a", "txet": "b"}, wrong("txet", "Extra inputs are not permitted")),
    "too long": ({"text": "x" * MAX_INPUT_BYTES}, TOO_LARGE),
    "too deep": ({"action": {"name": "a", "payload": nested(63)}}, TOO_DEEP),
}


class House(NamedTuple):
    url: str
    http: httpx.AsyncClient
    inbox: MemoryInbox
    asynchronous: AsyncClient
    blocking: Client

    async def session(self) -> str:
        answer = await self.http.post("/v1/sessions", json={"domain": "travel"})
        return answer.json()["session_id"]

    async def is_accepted(self, session_id: str) -> bool:
        return bool(await self.inbox.turns(DEFAULT_TENANT, session_id=SessionId(session_id), limit=1))


@asynccontextmanager
async def open_house() -> AsyncIterator[House]:
    store = MemoryStore()
    inbox = MemoryInbox(store)

    @asynccontextmanager
    async def dependencies() -> AsyncIterator[Dependencies]:
        yield make_dependencies(store, inbox=inbox)

    async with (
        serve(create_app(dependencies)) as url,
        httpx.AsyncClient(base_url=url) as http,
        AsyncClient(url) as asynchronous,
    ):
        with Client(url) as blocking:
            yield House(url, http, inbox, asynchronous, blocking)


async def over_http(house: House, fields: Fields) -> Verdict:
    session = await house.session()
    # `json.dumps` also writes NaN, like a careless client.
    answer = await house.http.post(
        f"/v1/sessions/{session}/turns",
        content=json.dumps(fields),
        headers={"Content-Type": "application/json"},
    )
    if answer.status_code == 202:
        assert await house.is_accepted(session)
        return ACCEPTED
    body = answer.json()
    return Verdict(body["code"], body["field"], body["detail"])


async def over_a_socket(house: House, fields: Fields) -> Verdict:
    """The member names differ by contract; the messages are the same."""
    names = {"text": "currentMessage", "action": "lastAction"}
    session = await house.session()
    async with websockets.connect(f"{house.url.replace('http', 'ws', 1)}/v1/sessions/{session}/ws") as socket:
        await socket.send(json.dumps({names.get(name, name): value for name, value in fields.items()}))
        while not await house.is_accepted(session):
            try:
                error = json.loads(await asyncio.wait_for(socket.recv(), 0.2))["error"]
            except TimeoutError:
                continue
            code, field, message = error["code"], error["field"], error["detail"]
            for name, other in names.items():
                field, message = field.replace(other, name, 1), message.replace(other, name, 1)
            return Verdict(code, field, message)
    return ACCEPTED


async def by_the_queue(_: House, fields: Fields) -> Verdict:
    """Submit through JSON, as Celery sends messages."""
    arguments = json.loads(json.dumps({"session_id": "s", **fields}))
    try:
        parse_request(arguments).for_inbox(DomainRegistry("travel"))
    except ParleyError as error:
        refusal = TaskRefused.because_of(error)
        code, message, *field = refusal.args
        assert len(message) < 300
        assert message not in repr(refusal), "what is logged and shown in Flower"
        return Verdict(code, field[0], message)
    return ACCEPTED


async def by_the_asynchronous_client(house: House, fields: Fields) -> Verdict:
    session = await house.session()
    return await _verdict(lambda: house.asynchronous.submit(session, **fields))


async def by_the_blocking_client(house: House, fields: Fields) -> Verdict:
    session = await house.session()
    return await _verdict(lambda: asyncio.to_thread(house.blocking.submit, session, **fields))


async def by_the_command_line(house: House, fields: Fields) -> Verdict:
    session = await house.session()
    options = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items() if name != "text"]
    command = ("-m", "parley", "submit", session, fields["text"], *options)
    ended = await asyncio.to_thread(run, command, environment={**os.environ, "PARLEY_URL": house.url})
    if ended.returncode == 0:
        return ACCEPTED
    message = ended.stderr.strip().removeprefix("parley: ").removeprefix("parley submit: ")
    return Verdict("invalid_input", message.partition(":")[0], message)


async def _verdict(submit: Callable[[], Awaitable[object]]) -> Verdict:
    try:
        await submit()
    except InvalidInput as error:
        return Verdict(error.code, error.field, str(error))
    return ACCEPTED


SOCKET_FIELDS = {"text", "action", "idempotency_key"}
CLIENT_FIELDS = {"text", "action", "idempotency_key", "sequence", "if_busy"}
COMMAND_CASES = {"text", "whitespace", "rule"}
"""A sufficient selection, because each is a process. Process arguments contain no NUL."""


def ways_for(name: str, fields: Fields) -> list[Callable[[House, Fields], Awaitable[Verdict]]]:
    """Return the interfaces that support these fields."""
    ways = [over_http, by_the_queue]
    if fields and set(fields) <= SOCKET_FIELDS and name != "both":
        ways.append(over_a_socket)
    if set(fields) <= CLIENT_FIELDS and name != "not a number":
        ways += [by_the_asynchronous_client, by_the_blocking_client]
    if name in COMMAND_CASES:
        ways.append(by_the_command_line)
    return ways


async def test_every_interface_comes_to_the_same_verdict_in_the_same_words() -> None:
    """RT-1, RT-23"""
    expected = {
        (name, way.__name__): verdict
        for name, (fields, verdict) in CASES.items()
        for way in ways_for(name, fields)
    }
    async with open_house() as house:
        verdicts = {
            (name, way.__name__): await way(house, fields)
            for name, (fields, _) in CASES.items()
            for way in ways_for(name, fields)
        }

    assert len(verdicts) > 100
    assert {case: verdict for case, verdict in verdicts.items() if verdict != expected[case]} == {}
