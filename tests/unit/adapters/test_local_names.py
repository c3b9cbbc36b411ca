"""Host names that a server without authentication answers (RT-22)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from orchestrator.adapters.local_names import is_private_name, refuse_public_names
from tests.cases import for_each


@for_each(
    "host",
    [
        "127.0.0.1",
        "10.0.0.7:9464",
        "[::1]:9464",
        "[fd00::7]",
        "localhost:1",
        "turns-0",
        "a.parley.svc",
        "box.local:80",
    ],
)
def test_private_names(host: str) -> None:
    assert is_private_name(host)


@for_each(
    "host",
    [
        "",
        ":80",
        "evil.example",
        "127.0.0.1.evil.example",
        "local.example:80",
        "[::1",
        "1.2.3.4.5",
        "a.svc.example",
    ],
)
def test_names_that_anybody_can_register(host: str) -> None:
    assert not is_private_name(host)


@pytest.mark.parametrize(("host", "status"), [("10.0.0.7:9464", "200 OK"), ("evil.example", "403 Forbidden")])
def test_a_server_without_authentication_tells_public_names_nothing(host: str, status: str) -> None:
    said: list[str] = []

    def metrics(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [b"parley_turns 7"]

    body = b"".join(
        refuse_public_names(metrics)({"HTTP_HOST": host}, lambda line, _headers: said.append(line))
    )

    assert said == [status]
    assert (b"parley_turns" in body) is (status == "200 OK")
