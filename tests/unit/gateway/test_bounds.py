"""Limits of every API call: size, depth and rate, including those of future routes (RT-23)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi.routing import APIRoute

from gateway.app import ROUTES
from gateway.auth.authentication import Rates
from gateway.middleware.body_limit import LARGER
from orchestrator.turns.submission import MAX_DEPTH, MAX_INPUT_BYTES
from tests.unit.gateway.guarded import GuardedHouse, guarded_house


def calls() -> Iterator[tuple[str, str]]:
    """Return the method and path of every call, with filled-in parameters."""
    for part in ROUTES:
        for route in part.router.routes:
            if isinstance(route, APIRoute) and route.path.startswith("/v1"):
                path = "/".join("x" if piece.startswith("{") else piece for piece in route.path.split("/"))
                yield from ((method, path) for method in sorted(route.methods))


CALLS = sorted(calls())
TOO_DEEP = b'{"text": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}"


def test_one_call_takes_more_because_its_clients_send_whole_conversations() -> None:
    assert list(LARGER) == ["/v1/agui"]


def test_there_are_calls() -> None:
    assert len(CALLS) > 40
    assert {method for method, _ in CALLS} >= {"GET", "POST", "PUT", "DELETE"}


async def test_no_call_takes_a_body_that_is_too_long_or_too_deep(house: GuardedHouse) -> None:
    key = await house.key(operator=True)
    for method, path in CALLS:
        most = LARGER.get(path, MAX_INPUT_BYTES)
        long = await house.ask(key, method, path, content=b'{"text": "' + b"x" * most + b'"}')
        assert (long.status_code, long.json()["code"]) == (413, "input_too_large"), (method, path)
        streamed = await house.ask(key, method, path, content=_pieces(most))
        assert streamed.status_code == 413, (method, path)
        deep = await house.ask(key, method, path, content=TOO_DEEP)
        assert (deep.status_code, deep.json()["field"]) == (422, "body"), (method, path)


async def _pieces(most: int) -> Any:
    """Yield a body without a known length."""
    for _ in range(most // 1024 + 1):
        yield b"x" * 1024


async def test_every_call_counts_against_its_caller() -> None:
    async with guarded_house(rates=Rates(caller=6)) as house:  # the burst is a sixth of it: one
        for method, path in CALLS:
            if path.startswith(
                ("/v1/exports", "/v1/calls")
            ):  # need no authentication, because their paths are signed
                continue
            key = await house.key(operator=True)
            first = await house.ask(key, method, path, json={})
            assert first.status_code != 429, (method, path)
            second = await house.ask(key, method, path, json={})
            assert (second.status_code, second.json()["code"]) == (429, "too_many_requests"), (method, path)
            assert int(second.headers["Retry-After"]) > 0
