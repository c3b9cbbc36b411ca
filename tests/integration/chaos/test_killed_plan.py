"""A plan of six steps whose worker is killed after each step has the normal result (PL-6, RT-8, RT-9)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from orchestrator.bootstrap import Ports
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TurnId, UserId
from tests.conversation import submit
from tests.integration.chaos.fleet import Fleet, fleet
from tests.integration.chaos.processes.plan_deaths import KILLS, SPARED
from tests.integration.chaos.suspicion import suspect_nobody

APPLICATION = "tests.integration.chaos.processes.plan_killer"
SETTINGS = {
    "PARLEY_LEASE_TTL_S": "3",
    "PARLEY_MAX_ATTEMPTS": "50",
    "PARLEY_TURN_DEADLINE_S": "240",
    "OPENAI_BASE_URL": "",
    "PARLEY_DOMAIN": "travel",
}
STEPS = ["outbound", "back", "compare", "book_outbound", "book_return", "overview"]


def _day(days: int) -> str:
    day = datetime.now(UTC).date() + timedelta(days=days)
    return f"{day:%A} {day.day} {day:%B} {day.year}"


def _texts() -> list[str]:
    """Return the texts with a fixed day, because the two conversations may be on both sides of midnight."""
    return ["plan a trip from Oslo to Lisbon for two", _day(30), _day(33), "yes", "yes"]


@dataclass
class Compared:
    """The same conversation with and without kills. `kills`: where they happened."""

    calm: dict[str, Any]
    stormy: dict[str, Any]
    kills: list[str]


async def _compare(database_url: str, redis_url: str, folder: Path) -> Compared:
    """Hold two conversations, the second with dying workers."""
    suspect_nobody(database_url)
    kills = folder / "kills"
    kills.mkdir()
    texts = _texts()
    with fleet(database_url, redis_url, folder, {**SETTINGS, KILLS: str(kills)}) as crew:
        async with crew.ports(PARLEY_DOMAIN="travel") as ports:
            crew.start(1, application=APPLICATION)
            calm = await _converse(crew, ports, f"{SPARED}-plan", texts)
            assert list(kills.iterdir()) == []
            stormy = await _converse(crew, ports, "killed-plan", texts)
    return Compared(calm, stormy, sorted(path.name.partition("-")[2] for path in kills.iterdir()))


def _check_that_nothing_was_lost(compared: Compared) -> None:
    calm, stormy = compared.calm, compared.stormy
    assert stormy["told"] == calm["told"]
    assert stormy["bookings"] == calm["bookings"] == 2
    assert [step["name"] for step in stormy["plan"]["steps"]] == STEPS
    assert {step["state"] for step in stormy["plan"]["steps"]} == {"Completed"}
    assert _outcomes(stormy["plan"]) == _outcomes(calm["plan"])
    assert (stormy["plan"]["state"], stormy["plan"]["progress"]) == ("Completed", "6 of 6")


@pytest.mark.slow
async def test_a_plan_survives_a_kill_after_every_step(
    database_url: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = await _compare(database_url, redis_url, tmp_path)
    happened = compared.kills
    with capsys.disabled():
        print(f"\n{len(happened)} kills: {', '.join(happened)}")
    assert sum("flight_search" in name for name in happened) == 2
    assert sum("flight_book" in name and "unrecorded" in name for name in happened) == 2
    for tool in ("fares_compare", "flight_offer", "booking_list"):
        assert any(tool in name for name in happened), tool
    _check_that_nothing_was_lost(compared)


def _outcomes(plan: JsonObject) -> list[str]:
    return [revision["outcome"] for revision in plan["revisions"]]


async def _converse(crew: Fleet, ports: Ports, name: str, texts: list[str]) -> dict[str, Any]:
    session = SessionId(name)
    replies = [await _say(crew, ports, session, text) for text in texts]
    references = _read_references(crew.database_url, name)
    told = "\n\n".join(replies)
    for number, reference in enumerate(references, start=1):
        told = told.replace(reference, f"REFERENCE {number}")
    return {
        "told": told,
        "bookings": len(references),
        "plan": await ports.stores.sessions.plan(DEFAULT_TENANT, session),
    }


async def _say(crew: Fleet, ports: Ports, session: SessionId, text: str) -> str:
    receipt = await submit(ports, session, text, "travel", user_id=UserId(session))
    async with asyncio.timeout(240):
        while True:
            await _keep_one_alive(crew)
            turn = await ports.stores.inbox.turn(DEFAULT_TENANT, TurnId(receipt.turn_id))
            if turn.finished_at is not None:
                assert turn.result is not None, turn
                assert turn.status.value == "done", turn
                return str(turn.result["reply"])
            await asyncio.sleep(0.1)


async def _keep_one_alive(crew: Fleet) -> None:
    if all(worker.process.poll() is not None for worker in crew.workers):
        await asyncio.to_thread(crew.start, 1, application=APPLICATION)


def _read_references(database_url: str, session: str) -> list[str]:
    """Return the existing bookings, oldest first."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT document->>'booking_ref' FROM records WHERE collection = 'bookings'"
            " AND document->>'session' = %s ORDER BY (document->>'booked_at')::float8",
            (session,),
        ).fetchall()
    return [row[0] for row in rows]
