"""Check Redis, a separate broker if there is one, and the processes that consume the queues."""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import orjson
import redis
from kombu.connection import Connection

from orchestrator.adapters.redis.client import connect_blocking
from orchestrator.adapters.redis.worker_registry import (
    MOST_REFUSED,
    PROCESSES,
    REFUSED,
    RegisteredProcess,
    read_process,
)
from parley.diagnosis.database import check_clock
from parley.diagnosis.finding import Finding, bad, note, well
from parley.roles import QUEUES, Role

_TIMEOUT_S = 3
_FULL = 0.9
_STARTS: Mapping[str, Role] = {queue: role for role, queues in QUEUES.items() for queue in queues}


def examine_redis(url: str) -> Iterator[Finding]:
    """Check a Redis server. Raises redis.RedisError if the server does not respond."""
    with _open(url) as client:
        server: Mapping[str, Any] = client.info("server")
        yield well("redis", f"version {server['redis_version']} is responding")
        yield from _check_writes(client.info("replication"), client.info("persistence"))
        yield check_clock("redis clock", _lead_s(client))
        yield from _check_memory(client.info("memory"))
        yield _check_log(client.info("persistence"))


def examine_broker(url: str) -> Iterator[Finding]:
    """Check a broker other than Redis. Findings don't contain the password in `url`."""
    with Connection(url, connect_timeout=_TIMEOUT_S) as connection:
        shown = connection.as_uri()
        try:
            connection.connect()
        except (*connection.connection_errors, OSError) as error:
            yield bad(
                "broker",
                f"{shown} is not responding: {' '.join(str(error).split())}",
                "turns continue as long as workers run; start the broker, or correct PARLEY_BROKER_URL",
            )
        else:
            yield well("broker", f"{shown} is responding")


def examine_processes(redis_url: str) -> Iterator[Finding]:
    """Check that each queue has a worker and that a scheduler is running. Report refused messages."""
    present = read_present(redis_url)
    workers = [entry for entry in present if entry.role == "worker"]
    for queue, role in _STARTS.items():
        count = sum(queue in worker.queues for worker in workers)
        if count:
            yield well(f"queue {queue}", f"{count} worker{'s' if count > 1 else ''} connected")
        else:
            yield bad(f"queue {queue}", "no worker consumes it", f"start one: `parley serve {role}`")
    beats = [entry for entry in present if entry.role == "beat"]
    if beats:
        yield well("beat", f"runs on {', '.join(sorted({beat.host for beat in beats}))}")
    else:
        yield bad("beat", "no scheduler is running", "start one: `parley serve beat`")
    yield from _check_refused(redis_url)


def read_present(redis_url: str) -> list[RegisteredProcess]:
    with _open(redis_url) as client:
        now_ms = int(_server_time(client) * 1000)
        members: Any = client.zrangebyscore(PROCESSES, now_ms, "+inf")
    return [read_process(member) for member in members]


def _check_refused(redis_url: str) -> Iterator[Finding]:
    with _open(redis_url) as client:
        kept: Any = client.lrange(REFUSED, 0, MOST_REFUSED - 1)
    if kept:
        last: dict[str, Any] = orjson.loads(kept[0])
        at = datetime.fromtimestamp(last["at"], UTC).isoformat(timespec="seconds")
        yield note(
            "refused messages",
            f"{len(kept)} stored without their contents, most recently at {at} from {last['queue']}: {last['wrong']}",
            f"find the sender, then delete the list {REFUSED} in Redis",
        )


def _check_writes(replication: Mapping[str, Any], persistence: Mapping[str, Any]) -> Iterator[Finding]:
    if replication["role"] != "master":
        yield bad(
            "redis writes",
            f"are refused: the server is a replica of {replication.get('master_host')}",
            "point REDIS_URL at the primary",
        )
    if persistence.get("aof_enabled") and persistence.get("aof_last_write_status", "ok") != "ok":
        yield bad(
            "redis writes", "are refused: Redis can't write its append-only file", "free disk space for Redis"
        )


def _check_memory(memory: Mapping[str, Any]) -> Iterator[Finding]:
    policy = memory["maxmemory_policy"]
    if policy == "noeviction":
        yield well("redis memory", "no keys are evicted")
    else:
        yield bad(
            "redis memory",
            f"maxmemory-policy is {policy}, which silently empties queues",
            "set `maxmemory-policy noeviction`",
        )
    used, most = memory["used_memory"], memory.get("maxmemory", 0)
    if most and used > _FULL * most:
        yield bad(
            "redis memory",
            f"{used * 100 // most} % of maxmemory is used",
            "raise maxmemory: a full Redis refuses messages and live events",
        )


def _check_log(persistence: Mapping[str, Any]) -> Finding:
    if persistence.get("aof_enabled"):
        return well("redis log", "is append-only")
    return note(
        "redis log",
        "appendonly is off",
        "set `appendonly yes`: a restart then keeps backends' queued submissions; accepted turns are safe",
    )


def _lead_s(client: redis.Redis) -> float:
    before = time.time()
    theirs = _server_time(client)
    return theirs - (before + time.time()) / 2


def _server_time(client: redis.Redis) -> float:
    seconds, micros = client.time()  # pyright: ignore[reportGeneralTypeIssues]  # typed for sync and async clients
    return seconds + micros / 1e6


def _open(url: str) -> AbstractContextManager[redis.Redis]:
    return connect_blocking(url, timeout_s=_TIMEOUT_S)
