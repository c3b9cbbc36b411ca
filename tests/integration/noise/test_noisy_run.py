"""Logs and metrics of a deployment contain no secrets and no texts of users, models or tools (RT-22, RT-24).

A whole deployment fails in as many ways as there are interfaces, always with quotes. Then everything that it
left behind is searched. `test_searching` tests the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from parley.testing.scripted_model import ScriptedModel
from tests.integration.chaos.fleet import wait_until
from tests.integration.deploy.fixtures.tls import REDIS
from tests.integration.noise import collected
from tests.integration.noise.canaries import CONTENTS, SECRETS
from tests.integration.noise.deployed import Place, place, roles
from tests.integration.noise.searching import Leak, find_leaks
from tests.integration.noise.traffic import (
    Noise,
    break_the_database,
    rude_script,
    run_commands,
    send_over_the_queue,
    talk_over_http,
)

pytestmark = [
    pytest.mark.skipif(not REDIS.exists(), reason="Debian's package redis-server is not installed"),
]


@dataclass(frozen=True)
class Left:
    """The results of a noisy run by place, and its secrets."""

    found: Mapping[str, bytes]
    secrets: Mapping[str, str]
    there: Place

    def log(self, name: str) -> str:
        return "".join(text.decode() for place, text in self.found.items() if place.startswith(f"log {name}"))


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    folder: Path = tmp_path_factory.mktemp("noise")
    noise = Noise()
    with place(folder) as there, ScriptedModel(rude_script()) as model:
        with roles(there, model.base_url) as addresses:
            talk_over_http(addresses["gateway"], there, noise)
            send_over_the_queue(there)
            wait_until(
                lambda: len(there.outside.asked["hooks"]) > 3, within_s=60, what="webhooks are delivered"
            )
            break_the_database(addresses["gateway"], there, noise)
            run_commands(there, addresses["gateway"], noise)
            desk, flower = noise.secrets["operator's key"], ("flower", SECRETS["flower"])
            found = {
                **noise.bodies,
                **collected.read_commands(),
                **collected.read_pages(addresses, desk, flower),
            }
        keys = [request.headers.get("authorization") for request in model.requests]
        assert f"Bearer {SECRETS['model']}" in keys
        found |= collected.read_logs(there) | collected.read_redis(there)
        found |= collected.read_tables(there) | collected.read_traces(there)
        yield Left(found, {**SECRETS, **there.passwords, **noise.secrets}, there)


def test_the_run_was_noisy(left: Left) -> None:
    """Failures were logged and planted words arrived: otherwise this test would show nothing."""
    for event in (
        "A tool failed unexpectedly.",
        "A tool's output is invalid.",
        "A tool's endpoint rejected a call.",
        "A tool's endpoint failed.",
        "Dropped a message for an unknown task.",
        "Dropped a malformed message, or one with a disallowed content type.",
        "Lost the connection that holds the worker lock.",
    ):
        assert event in left.log("logs/turns"), event
    assert "A webhook's receiver failed" in left.log("logs/internal")
    assert '"code":"unavailable"' in "".join(
        text.decode() for name, text in left.found.items() if "POST" in name
    )
    tool = left.there.outside.asked["track"][0]
    assert SECRETS["tool"] in tool.path
    assert tool.headers["Authorization"] == f"Bearer {SECRETS['tool']}"
    collector = left.there.outside.asked["v1"][0]
    assert collector.headers["x-collector-key"] == SECRETS["collector"]
    kept = {place: text for place, text in left.found.items() if collected.is_for_contents(place)}
    assert {leak.word for leak in find_leaks(kept, CONTENTS)} >= {
        "said",
        "slot",
        "result",
        "document",
        "submitted",
    }


def test_no_secret_is_anywhere(left: Left) -> None:
    """Except webhook secrets in their own table, which are needed again."""
    searched = {place: text for place, text in left.found.items() if place != "table webhook_secrets"}
    leaks = find_leaks(searched, left.secrets)
    assert not leaks, tell(leaks)


def test_contents_are_only_where_they_belong(left: Left) -> None:
    searched = {place: text for place, text in left.found.items() if not _answers(place)}
    leaks = find_leaks(searched, CONTENTS)
    assert not leaks, tell(leaks)


def tell(leaks: Sequence[Leak]) -> str:
    return "\n".join(f"{leak.word} in {leak.place}: {leak.excerpt!r}" for leak in leaks)


def _answers(place: str) -> bool:
    """Return whether the text is stored as content, or is an answer to its author."""
    return (
        collected.is_for_contents(place)
        or "/v1/sessions" in place
        or "/v1/turns" in place
        or "/v1/runs" in place
    )
