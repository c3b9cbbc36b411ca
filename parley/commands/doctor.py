"""`parley doctor`: looks at everything a run needs, and says what to do about what is missing."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import redis
import typer

from orchestrator.errors import ParleyError, Unavailable
from orchestrator.settings import OPENAI_URL, Settings
from parley.commands.options import DEFAULT_DATA_DIR, DEFAULT_DOMAIN, DataDir, Domain, settle_domain
from parley.connection import locate_gateway, open_client
from parley.embedded.lock import is_held
from parley.embedded.postgres import find_binaries
from parley.embedded.redis import find_server

_TIMEOUT_S = 3
_DEFAULT_MODEL = str(Settings.model_fields["model"].default)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found. `fine` is None where nothing is wrong, only worth knowing."""

    name: str
    fine: bool | None
    message: str


def doctor(data_dir: DataDir = DEFAULT_DATA_DIR, domain: Domain = DEFAULT_DOMAIN) -> None:
    """Check programs, stores, gateway, model and domain; non-zero exit code when something is wrong."""
    findings = list(examine(data_dir.resolve(), domain))
    for finding in findings:
        mark = {True: "ok  ", False: "BAD ", None: "note"}[finding.fine]
        print(f"{mark}  {finding.name:<10} {finding.message}")
    if any(finding.fine is False for finding in findings):
        raise typer.Exit(1)


def examine(data_dir: Path, domain: str) -> Iterator[Finding]:
    """All findings, in the order in which a run would need the things."""
    yield Finding("python", True, f"{platform.python_version()} on {platform.system()}")
    yield _attempt("redis", lambda: _look_at_redis(os.environ.get("REDIS_URL")))
    yield _attempt("postgres", lambda: _look_at_postgres(os.environ.get("DATABASE_URL")))
    yield _attempt("domain", lambda: f"{settle_domain(domain)} is there")
    yield _look_at_gateway(data_dir)
    yield _look_at_model()


def _attempt(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, look())
    except (ParleyError, psycopg.Error, redis.RedisError) as error:
        return Finding(name, False, " ".join(str(error).split()))


def _look_at_redis(url: str | None) -> str:
    if url is None:
        return f"embedded, {find_server()}"
    with redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S) as client:
        version = client.info("server")["redis_version"]
        policy = client.config_get("maxmemory-policy")["maxmemory-policy"]
    if policy != "noeviction":
        raise Unavailable(f"REDIS_URL: maxmemory-policy is {policy}, which empties queues; set noeviction.")
    return f"REDIS_URL answers, Redis {version}"


def _look_at_postgres(url: str | None) -> str:
    if url is None:
        return f"embedded, {find_binaries(None)}"
    with psycopg.connect(url, connect_timeout=_TIMEOUT_S) as connection:
        number = connection.info.server_version // 10_000
        vector = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
    if vector is None:
        return (
            f"DATABASE_URL answers, PostgreSQL {number} without pgvector: documents are found by words alone"
        )
    return f"DATABASE_URL answers, PostgreSQL {number} with pgvector"


def _look_at_gateway(data_dir: Path) -> Finding:
    url = locate_gateway(None, data_dir)
    if url is None:
        running = "it is starting or stopping" if is_held(data_dir) else "start one with `parley up`"
        return Finding("gateway", None, f"none runs on {data_dir}: {running}")
    return _attempt("gateway", lambda: _ask_gateway(url))


def _ask_gateway(url: str) -> str:
    with open_client(url) as client:
        down = client.ready().get("models_down") or []
    names = ", ".join(f"{entry['model']} at {entry['endpoint']} (breaker {entry['state']})" for entry in down)
    return f"{url} is ready" + (f"; not asked at present: {names}" if down else "")


def _look_at_model() -> Finding:
    """Ask the endpoint for the models it has."""
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    if not (key or url):
        return Finding("model", None, "no OPENAI_API_KEY: System 1 and direct mode only")
    model = os.environ.get("PARLEY_MODEL") or _DEFAULT_MODEL
    address = url or OPENAI_URL
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        reply = httpx.get(f"{address.rstrip('/')}/models", headers=headers, timeout=_TIMEOUT_S)
        reply.raise_for_status()
        known = {str(entry["id"]) for entry in reply.json()["data"]}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        return Finding("model", False, f"{address} does not answer, turns go on in System 1: {error}")
    if model not in known:
        return Finding(
            "model", None, f"{address} answers, but does not list {model}; PARLEY_MODEL names another"
        )
    return Finding("model", True, f"{address} answers and has {model}")
