"""The users of the access control list can do what they have to, and nothing that hurts (RT-22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from celery import Celery

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.redis.acl import USERS, write_acl_file
from parley.main import run
from tests.integration.chaos.counting import EFFECTS
from tests.integration.chaos.fleet import fleet
from tests.integration.gateway import House, open_house

PASSWORD = "word"


@pytest.fixture
def urls(redis_url: str) -> Iterator[dict[str, str]]:
    """An address for each user of the list, on a real server."""
    parts = urlsplit(redis_url)
    place = f"{parts.hostname}:{parts.port}{parts.path}"
    with redis.Redis.from_url(redis_url) as admin:
        for user in USERS:
            admin.execute_command("ACL", "SETUSER", user.name, "on", f">{PASSWORD}", *user.rules())
        yield {user.name: f"redis://{user.name}:{PASSWORD}@{place}" for user in USERS}
        for user in USERS:
            admin.execute_command("ACL", "DELUSER", user.name)


@pytest.fixture
async def house(database_url: str, urls: dict[str, str]) -> AsyncIterator[House]:
    async with open_house(database_url, urls["parley-gateway"]) as house:
        with psycopg.connect(database_url) as connection:
            connection.execute(EFFECTS)
        yield house


async def test_gateway_workers_and_senders_work_together(
    house: House, database_url: str, urls: dict[str, str], tmp_path: Path
) -> None:
    """A turn over HTTP and one over the queue, each waited for; its result is read back."""
    migrate(database_url)
    with fleet(database_url, urls["parley-worker"], tmp_path, {"PARLEY_LEASE_TTL_S": "3"}) as crew:
        crew.start(1)
        made = await house.http.post("/v1/sessions", json={"domain": "travel", "session_id": "over-http"})
        assert made.status_code == 201, made.text
        turn = await house.http.post(
            "/v1/sessions/over-http/turns", params={"wait": 20}, json={"text": "say"}, timeout=30
        )
        assert (turn.status_code, turn.json()["status"]) == (200, "done"), turn.text

        url = urls["parley-sender"]
        with Celery(set_as_current=False, broker=url, backend=url) as app:
            arguments = {"session_id": "over-queue", "text": "say", "wait": 20}
            sent = app.send_task("orchestrator.submit_turn", kwargs=arguments, queue="submissions")
            done = await asyncio.to_thread(sent.get, timeout=30, interval=0.05)
    assert done["status"] == "done"


HARMFUL = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "dir", "/"),
    ("KEYS", "*"),
    ("MONITOR",),
    ("DEBUG", "SLEEP", "0"),
    ("SHUTDOWN", "NOSAVE"),
    ("ACL", "LIST"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("REPLICAOF", "127.0.0.1", "1"),
    ("MODULE", "LIST"),
    ("SCRIPT", "FLUSH"),
    ("SET", "somebody-elses", "1"),
    ("GET", "somebody-elses"),
    ("PUBLISH", "somebody-elses", "1"),
    ("EVAL", "return redis.call('get', 'somebody-elses')", "0"),
)


@pytest.mark.parametrize("user", [user.name for user in USERS])
def test_nothing_that_hurts_is_allowed(urls: dict[str, str], user: str) -> None:
    with redis.Redis.from_url(urls[user]) as client:
        assert client.ping()  # what follows is refused for what it is
        for command in HARMFUL:
            with pytest.raises(redis.ResponseError) as refusal:
                client.execute_command(*command)
            told = str(refusal.value).lower()
            assert any(words in told for words in ("permission", "noperm", "can't access")), (command, told)


@pytest.mark.parametrize(
    ("user", "key"),
    [
        ("parley-gateway", "unacked"),
        ("parley-gateway", "submissions"),
        ("parley-sender", "parley:ready"),
        ("parley-sender", "turns"),
        ("parley-flower", "parley:ready"),
    ],
)
def test_each_stays_with_its_own_keys(urls: dict[str, str], user: str, key: str) -> None:
    with redis.Redis.from_url(urls[user]) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.delete(key)


def test_a_server_takes_the_file(
    redis_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line is one that `ACL SETUSER` understands, and no password stands in it."""
    assert run(["redis-acl"]) == 0
    printed = capsys.readouterr()
    told = dict(line.split(" ") for line in printed.err.splitlines())
    assert printed.out == write_acl_file(told)
    assert not any(password in printed.out for password in told.values())
    parts = urlsplit(redis_url)
    with redis.Redis.from_url(redis_url) as admin:
        for line in printed.out.splitlines()[1:]:
            admin.execute_command("ACL", "SETUSER", *line.split(" ")[1:])
        for name, password in told.items():
            with redis.Redis(
                host=parts.hostname, port=parts.port, username=name, password=password
            ) as client:
                assert client.ping()
            with suppress(redis.ResponseError):
                admin.execute_command("ACL", "DELUSER", name)
