"""Downloads with signed, expiring paths, and with names that may come from a domain's data (RS-5)."""

from __future__ import annotations

import base64
from dataclasses import replace

from gateway.routes.read_models import attach
from orchestrator.domain.export_links import PREFIX, ExportLink, read_link
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.cases import for_each
from tests.unit.gateway.guarded import GuardedHouse

LINK = ExportLink(DEFAULT_TENANT, SessionId("session_1"), "a1b2", 1_800_000_000)
TOKEN = LINK.path("key").removeprefix(PREFIX)
NESTED = base64.urlsafe_b64encode(b"[" * 3_000).decode() + ".eA"
WITH_NUL = replace(LINK, session_id=SessionId("session\0")).path("key").removeprefix(PREFIX)
OTHERS = (
    replace(LINK, session_id=SessionId("session_2")),
    replace(LINK, export_id="a1b3"),
    replace(LINK, expires_at=1_900_000_000),
)


def test_a_path_says_what_it_is_for_and_is_signed() -> None:
    read = read_link(TOKEN)

    assert read is not None
    assert read[0] == LINK
    assert LINK.is_signed(read[1], "key")
    assert not LINK.is_signed(read[1], "another")
    assert not any(other.is_signed(read[1], "key") for other in OTHERS)


@for_each(
    "token",
    [
        "x",
        "x.",
        "a.b",
        TOKEN[:40],
        TOKEN.partition(".")[0] + ".é",
        "bnVsbA.x",
        "WzFd.x",
        "WzEsMiwzLDRd.eA",
        "%00",
        NESTED,
        WITH_NUL,
    ],
)
async def test_what_is_no_signed_path_finds_nothing(house: GuardedHouse, token: str) -> None:
    """The route needs no authentication, so it limits guesses."""
    answer = await house.ask(None, "GET", f"{PREFIX}{token}")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "Export 'invalid or expired path' not found."
    assert read_link(WITH_NUL) is None, "no store keeps such a name"


async def test_paths_cannot_be_guessed_at_leisure(house: GuardedHouse) -> None:
    statuses = [(await house.ask(None, "GET", f"{PREFIX}{TOKEN}")).status_code for _ in range(40)]

    assert set(statuses) == {404, 429}


@for_each(
    ("name", "header"),
    [
        ("airports.csv", 'attachment; filename="airports.csv"'),
        ("Zürich 2.csv", "attachment; filename*=UTF-8''Z%C3%BCrich%202.csv"),
        ('a"; x="b.csv', "attachment; filename*=UTF-8''a%22%3B%20x%3D%22b.csv"),
        ("a\r\nSet-Cookie: b.csv", "attachment; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20b.csv"),
    ],
)
def test_a_name_ends_no_header(name: str, header: str) -> None:
    assert attach(name) == header
