"""WebSocket messages have the same limits as HTTP requests: size, depth and rate (RT-23)."""

from __future__ import annotations

import orjson
import pytest

from orchestrator.adapters.postgres.keys import PostgresKeys
from orchestrator.adapters.postgres.pool import Database
from orchestrator.turns.access import Scope
from orchestrator.turns.submission import MAX_DEPTH, MAX_INPUT_BYTES
from orchestrator.types import DEFAULT_TENANT
from tests.integration.gateway import open_house


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('{"currentMessage": "' + "x" * MAX_INPUT_BYTES + '"}', "input_too_large"),
        (
            '{"lastAction": {"name": "a", "payload": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}}",
            "invalid_input",
        ),
        ("{", "invalid_input"),
    ],
    ids=["long", "deep", "no JSON"],
)
async def test_messages_are_bounded_and_those_that_are_wrong_counted_too(
    database_url: str, redis_url: str, message: str, code: str
) -> None:
    """The limit is six per minute, so the second message must wait although the first was refused."""
    async with (
        open_house(database_url, redis_url, auth="required", session_rate=6) as house,
        Database(database_url) as owner,
    ):
        _, key = await PostgresKeys(owner).create(DEFAULT_TENANT, "x", frozenset({Scope.USER}))
        headers = {"Authorization": f"Bearer {key}"}
        made = await house.http.post("/v1/sessions", json={"domain": "travel"}, headers=headers)
        async with house.socket(made.json()["session_id"], additional_headers=headers) as socket:
            for expected in (code, "too_many_requests"):
                await socket.send(message)
                assert orjson.loads(await socket.recv())["error"]["code"] == expected
