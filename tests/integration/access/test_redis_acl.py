"""Users of the access control list can do what they need, and nothing harmful (RT-22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import redis

from orchestrator.adapters.redis.acl import USERS, write_acl_file
from parley.main import run
from tests.cases import for_each
from tests.celery_clients import celery_client, submit_turn
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.chaos.processes.counting import EFFECTS
from tests.integration.deploy.fixtures.deployment import make_secrets
from tests.integration.deploy.fixtures.manifests import KEDA_COUNT
from tests.integration.deploy.fixtures.servers import deployed_redis
from tests.integration.gateway import House, open_house
from tests.integration.workers.test_workers_flower_pages import flower


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return a URL for each account of `deploy/make-secrets.sh`, on a server as started by Compose."""
    folder = tmp_path_factory.mktemp("redis")
    with deployed_redis(folder, make_secrets(folder)) as urls:
        yield {f"parley-{account}": url for account, url in urls.items()}


@pytest.fixture
async def house(database_url: str, urls: dict[str, str]) -> AsyncIterator[House]:
    async with open_house(database_url, urls["parley-gateway"]) as house:
        with psycopg.connect(database_url) as connection:
            connection.execute(EFFECTS)
        yield house


async def test_gateway_workers_and_senders_work_together(
    house: House, database_url: str, urls: dict[str, str], tmp_path: Path
) -> None:
    """A turn over HTTP and a turn over the queue, both awaited; the result is read."""
    with fleet(database_url, urls["parley-worker"], tmp_path, {"PARLEY_LEASE_TTL_S": "3"}) as crew:
        crew.start(1)
        made = await house.http.post("/v1/sessions", json={"domain": "travel", "session_id": "over-http"})
        assert made.status_code == 201, made.text
        turn = await house.http.post(
            "/v1/sessions/over-http/turns", params={"wait": 20}, json={"text": "say"}, timeout=30
        )
        assert (turn.status_code, turn.json()["status"]) == (200, "done"), turn.text

        with celery_client(urls["parley-sender"]) as app:
            sent = submit_turn(app, "over-queue", "say", wait=20)
            done = await asyncio.to_thread(sent.get, timeout=30, interval=0.05)
    assert done["status"] == "done"


async def test_flower_and_internal_flows_work_with_their_accounts(
    house: House, database_url: str, urls: dict[str, str], tmp_path: Path
) -> None:
    """Flower sees the turn's session and queue lengths; a run started by the gateway is executed."""
    environment = {
        "DATABASE_URL": database_url,
        "REDIS_URL": urls["parley-flower"],
        "FLOWER_UNAUTHENTICATED_API": "true",
    }
    log = tmp_path / "flower.log"
    with (
        fleet(database_url, urls["parley-worker"], tmp_path) as crew,
        flower(environment, log) as page,
    ):
        crew.start(1, options=("-E",))
        crew.start(1, application="workers.app", queues="internal,urgent", options=("-E",))
        await house.http.post("/v1/sessions", json={"domain": "travel", "session_id": "watched"})
        turn = await house.http.post(
            "/v1/sessions/watched/turns", params={"wait": 20}, json={"text": "say"}, timeout=30
        )
        assert turn.json()["status"] == "done"
        started = await house.http.post(
            "/v1/runs", json={"flow": "summarize_session", "session_id": "watched"}
        )
        assert started.status_code in {200, 201, 202}, started.text
        run_id = started.json()["run_id"]
        await asyncio.to_thread(
            wait_until,
            lambda: _shows(page, "watched") and _shows(page, run_id),
            within_s=60,
            what=f"both are shown, see {log}",
        )
        lengths = await asyncio.to_thread(httpx.get, f"{page}/api/queues/length")
        assert {queue["name"] for queue in lengths.json()["active_queues"]} >= {"turns"}
    assert "permission" not in log.read_text()


def _shows(page: str, identifier: str) -> bool:
    return identifier in httpx.get(f"{page}/api/tasks", verify=False).text


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


@for_each("user", USERS)
def test_nothing_that_hurts_is_allowed(urls: dict[str, str], user: str) -> None:
    with redis.Redis.from_url(urls[user]) as client:
        assert client.ping()  # the following commands are refused because of their kind
        for command in HARMFUL:
            with pytest.raises(redis.ResponseError) as refusal:
                client.execute_command(*command)
            told = str(refusal.value).lower()
            refusals = ("permission", "the user executing the script can't", "not allowed")
            assert any(words in told for words in refusals), (command, told)


@for_each(
    ("user", "command"),
    [
        ("parley-worker", "SET parley 1"),  # not `parley:…`
        ("parley-gateway", "DEL unacked"),
        ("parley-gateway", "LRANGE submissions 0 -1"),
        ("parley-gateway", "GET celery-task-meta-1"),
        ("parley-gateway", "PUBLISH /0.celeryev/task.x 1"),
        ("parley-sender", "ZADD parley:ready 1 s"),
        ("parley-sender", "LPUSH turns 1"),
        ("parley-sender", "LRANGE submissions 0 -1"),
        ("parley-sender", "RPOP submissions"),
        ("parley-sender", "SET celery-task-meta-1 1"),
        ("parley-flower", "DEL parley:ready"),
        ("parley-flower", "LRANGE submissions 0 -1"),
        ("parley-flower", "DEL turns"),
        ("parley-flower", "LPUSH turns 1"),
        ("parley-flower", "RPOP turns"),
        ("parley-flower", "HGETALL unacked"),
        ("parley-flower", "PUBLISH parley:events 1"),
        ("parley-scaler", "ZRANGE parley:ready 0 -1"),
        ("parley-scaler", "ZADD parley:ready 1 s"),
        ("parley-scaler", "GET parley:processes"),
        ("parley-scaler", "LRANGE submissions 0 -1"),
        ("parley-probe", "GET parley:ready"),
        ("parley-probe", "INFO"),
    ],
)
def test_each_does_only_what_it_has_to(urls: dict[str, str], user: str, command: str) -> None:
    with redis.Redis.from_url(urls[user]) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*command.split())


def test_the_server_keeps_what_it_is_given_and_strangers_may_nothing(urls: dict[str, str]) -> None:
    with redis.Redis.from_url(urls["parley-worker"]) as client:
        assert client.info("memory")["maxmemory_policy"] == "noeviction"
        assert client.info("persistence")["aof_enabled"] == 1
    stranger = urls["parley-worker"].replace("parley-worker:", "default:")
    with redis.Redis.from_url(stranger) as other, pytest.raises(redis.RedisError):
        other.ping()


def test_whoever_scales_counts_what_waits(urls: dict[str, str]) -> None:
    with redis.Redis.from_url(urls["parley-worker"]) as worker:
        worker.zadd("parley:ready", {"a": 1, "b": 2})
        worker.lpush("submissions", "x")
    with redis.Redis.from_url(urls["parley-scaler"]) as scaler:
        counted = [scaler.eval(KEDA_COUNT, 1, key) for key in ("parley:ready", "submissions", "urgent")]
    assert counted == [2, 1, 0]


def test_a_server_takes_the_list_that_the_command_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The printed passwords are valid, and the file contains none of them."""
    assert run(["redis-acl"]) == 0
    printed = capsys.readouterr()
    told = dict(line.split(" ") for line in printed.err.splitlines())
    assert printed.out == write_acl_file(told)
    assert not any(password in printed.out for password in told.values())
    for name, password in told.items():
        (tmp_path / f"{name.removeprefix('parley-')}_redis_password").write_text(password)
    (tmp_path / "redis.acl").write_text(printed.out)
    with deployed_redis(tmp_path, tmp_path) as urls:
        for url in urls.values():
            with redis.Redis.from_url(url) as client:
                assert client.ping()
