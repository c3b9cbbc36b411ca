"""The gateway's front: addresses, host names, response headers, limits (RT-23)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from structlog.testing import capture_logs

from gateway.__main__ import server_options
from gateway.app import Exposure
from gateway.auth import rate_limits
from gateway.auth.authentication import Rates
from gateway.auth.binding import require_safe_host
from gateway.middleware.hosts import LOOPBACK_HOSTS
from orchestrator.errors import ConfigurationError, Unavailable
from orchestrator.ports.access import Limit
from orchestrator.settings import Settings
from orchestrator.turns.submission import MAX_DEPTH, is_too_deep
from orchestrator.types import TenantId
from tests.cases import for_each
from tests.unit.gateway.guarded import GuardedHouse, guarded_house


@asynccontextmanager
async def exposed(**values: object) -> AsyncIterator[GuardedHouse]:
    async with guarded_house(exposure=Exposure(**values)) as house:  # type: ignore[arg-type]
        yield house


@for_each("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_authentication(host: str) -> None:
    require_safe_host(host, authenticated=False)


@for_each("host", ["0.0.0.0", "::", "", "192.168.1.5", "example.com", "localhost.example.com"])
def test_elsewhere_authentication_is_a_must(host: str) -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_AUTH"):
        require_safe_host(host, authenticated=False)
    require_safe_host(host, authenticated=True)


STARTING = """
import runpy, sys
import gateway.app, workers.app
print(*sys.modules)
import orchestrator.agent.build
print(*sys.modules)
runpy.run_module("gateway", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def started() -> subprocess.CompletedProcess[str]:
    """Start a process with the imports of gateways and workers that may not listen on its address."""
    environment = {
        **os.environ,
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1",
    }
    environment.pop("PARLEY_AUTH", None)
    command = [sys.executable, "-c", STARTING, "--host", "0.0.0.0"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_makes_agents_and_asks_models_is_loaded_by_who_does_so(
    started: subprocess.CompletedProcess[str],
) -> None:
    """Neither the gateway nor a starting worker imports it. Workers that run turns import it later."""
    loaded = {*started.stdout.splitlines()[0].split()}
    assert {"gateway.app", "workers.app"} < loaded
    assert not {"numpy", "openai", "orchestrator.agent.build", "orchestrator.nlu.system1"} & loaded


def test_large_libraries_are_loaded_by_those_that_need_them(
    started: subprocess.CompletedProcess[str],
) -> None:
    loaded = {*started.stdout.splitlines()[1].split()}
    assert "orchestrator.agent.build" in loaded
    assert not {"sqlglot", "jwt"} & loaded


def test_the_gateway_ends_with_one_line_instead(started: subprocess.CompletedProcess[str]) -> None:
    assert started.returncode == 2
    (line,) = started.stderr.strip().splitlines()
    assert "PARLEY_AUTH=required" in line
    assert "parley keys create" in line


async def test_no_other_origin_may_read_by_default(house: GuardedHouse) -> None:
    answer = await house.http.get("/health/live", headers={"Origin": "https://shop.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_named_origins_may() -> None:
    async with exposed(cors_origins=("https://shop.example",)) as house:
        asked = {
            "Origin": "https://shop.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,traceparent,tracestate,baggage",
        }
        allowed = await house.http.options("/v1/sessions", headers=asked)
        assert allowed.status_code == 200
        assert allowed.headers["Access-Control-Allow-Origin"] == "https://shop.example"
        refused = await house.http.get("/v1/sessions", headers={"Origin": "https://shop.example"})
        assert refused.status_code == 401
        assert refused.headers["Access-Control-Allow-Origin"] == "https://shop.example"
        other = await house.http.get("/health/live", headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers


async def test_an_open_gateway_answers_to_its_own_names_only() -> None:
    """Pages that rebind their name to loopback, or post across origins, get nothing."""
    async with exposed(hosts=LOOPBACK_HOSTS) as house:
        for host in ("127.0.0.1:8600", "localhost:8600", "[::1]:8600", "localhost"):
            assert (await house.http.get("/health/live", headers={"Host": host})).status_code == 200
        for headers in (
            {"Host": "evil.example"},
            {"Host": "127.0.0.1.evil.example"},
            {"Host": "[::1"},
            {"Host": "127.0.0.1", "Origin": "https://evil.example"},
            {"Host": "127.0.0.1", "Origin": "null"},
        ):
            answer = await house.http.get("/health/live", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        own = {"Host": "127.0.0.1:8600", "Origin": "http://127.0.0.1:8600"}
        assert (await house.http.get("/health/live", headers=own)).status_code == 200


async def test_open_metrics_are_for_the_own_network(house: GuardedHouse) -> None:
    """Pages whose name resolves to this address (DNS rebinding) need credentials."""
    house.access.open_metrics = True
    for host in ("10.1.2.3:8600", "[fd00::1]:8600", "gateway:8600", "gateway.parley.svc:8600"):
        assert (await house.http.get("/metrics", headers={"Host": host})).status_code == 200
    for host in ("evil.example", "evil.example:8600", "svc.evil.example", ""):
        assert (await house.http.get("/metrics", headers={"Host": host})).status_code == 401


async def test_no_address_is_redirected_to_the_callers_own_host(house: GuardedHouse) -> None:
    for path in ("/v1/sessions/", "/v1/sessions/x/events/?access_token=t", "/health/live/"):
        answer = await house.http.get(path, headers={"Host": "evil.example"})
        assert answer.status_code in {401, 404}
        assert "location" not in answer.headers


@for_each(
    ("trusted", "client", "seen"),
    [
        ((), "127.0.0.1", "127.0.0.1"),
        (("10.1.0.0/16",), "127.0.0.1", "127.0.0.1"),
        (("10.1.0.0/16",), "10.2.0.1", "10.2.0.1"),
        (("10.1.0.0/16",), "10.1.2.3", "198.51.100.7"),
    ],
)
async def test_who_asked_is_told_by_trusted_proxies_alone(
    trusted: tuple[str, ...], client: str, seen: str
) -> None:
    found: list[str] = []

    async def app(scope: Any, _receive: object, _send: object) -> None:
        found.append(scope["client"][0])

    settings = Settings(
        DATABASE_URL="postgresql://x/y", REDIS_URL="redis://x", PARLEY_TRUSTED_PROXIES=trusted
    )
    config = uvicorn.Config(app, **server_options(settings))
    config.load()
    # The client sent the first entry; a proxy added the second.
    headers = [(b"x-forwarded-for", b"203.0.113.9, 198.51.100.7"), (b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "client": (client, 4711), "scheme": "http", "headers": headers}

    await config.loaded_app(scope, None, None)

    assert found == [seen]


async def test_answers_tell_browsers_to_be_careful(house: GuardedHouse) -> None:
    for path in ("/health/live", "/v1/sessions", "/nothing"):
        headers = (await house.http.get(path)).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    page = (await house.http.get("/docs")).headers
    assert page["X-Content-Type-Options"] == "nosniff"
    assert "script-src 'self';" in page["Content-Security-Policy"]


async def test_the_description_can_be_left_out() -> None:
    async with exposed() as house:
        page = await house.http.get("/docs")
        assert page.status_code == 200
        for name in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert name.startswith("/docs/")
            assert (await house.http.get(name)).status_code == 200
        assert (await house.http.get("/docs/redoc.standalone.js")).status_code == 404
    async with exposed(docs=False) as house:
        assert (await house.http.get("/docs")).status_code == 404
        assert (await house.http.get("/openapi.json")).status_code == 404


async def test_headers_are_bounded(house: GuardedHouse) -> None:
    answer = await house.http.get("/health/live", headers={f"X-{number}": "1" for number in range(101)})
    assert (answer.status_code, answer.json()["field"]) == (431, "headers")


@for_each(
    ("body", "deep"),
    [
        (MAX_DEPTH * b"[" + MAX_DEPTH * b"]", False),
        ((MAX_DEPTH + 1) * b"[" + (MAX_DEPTH + 1) * b"]", True),
        ((MAX_DEPTH + 1) * b'{"a":' + b"1", True),
        (b"[" + 500 * b"[]," + b"1]", False),
        (b'"' + 500 * b"[" + b'"', False),
        (b'["\\"' + 500 * b"[" + b'"]', False),
        (b'["\\\\", ' + 500 * b"[", True),
        (b'"' + 500 * b"[", False),  # not JSON, which other code rejects
    ],
)
def test_depth_is_that_of_brackets_outside_of_strings(body: bytes, deep: bool) -> None:
    assert is_too_deep(body) is deep


async def test_a_session_and_a_tenant_have_limits_of_their_own() -> None:
    async with guarded_house(rates=Rates(session=12, tenant=600)) as house:
        key = await house.key()
        one, two = await house.session(key), await house.session(key)
        path = f"/v1/sessions/{one}/turns"
        codes = [(await house.ask(key, "POST", path, json={"text": "hi"})).status_code for _ in range(3)]
        assert codes == [202, 202, 429]
        assert (await house.ask(key, "POST", path.replace(one, two), json={"text": "hi"})).status_code == 202
        assert (await house.ask(key, "GET", f"/v1/sessions/{one}")).status_code == 200

    async with guarded_house(rates=Rates(tenant=12)) as house:
        first, second, theirs = await house.key(), await house.key(), await house.key("bolt")
        for key, code in ((first, 200), (second, 200), (first, 429), (theirs, 200)):
            assert (await house.ask(key, "GET", "/v1/sessions")).status_code == code


class _NobodyCounts:
    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        raise Unavailable("away")


async def test_without_redis_nobody_is_counted_and_it_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_warned_at", -1e9)
    monkeypatch.setattr(rate_limits, "WARN_EVERY_S", 1e6)  # on a busy machine, five requests are slow
    async with guarded_house(rates=Rates(caller=1)) as house:
        house.access.limits = _NobodyCounts()
        key = await house.key()
        with capture_logs() as logs:
            codes = [(await house.ask(key, "GET", "/v1/sessions")).status_code for _ in range(5)]
        assert codes == [200] * 5
        assert [entry["log_level"] for entry in logs] == ["warning"]
