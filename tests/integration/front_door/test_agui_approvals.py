"""Approvals over AG-UI interrupts: two in reverse order, after a restart, and too late (PX-17)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from gateway.app import create_app
from gateway.wiring import open_dependencies
from orchestrator.settings import Settings
from tests.integration.chaos.fleet import Fleet, fleet
from tests.integration.front_door.agui_client import answer, interrupts_of, run, text_of
from tests.integration.gateway import serve

TREASURY = Path(__file__).resolve().parents[3] / "examples" / "treasury"


@dataclass(frozen=True)
class House:
    """A place to start gateways and workers of the treasury domain."""

    database_url: str
    redis_url: str
    crew: Fleet

    def gateway(self) -> AbstractAsyncContextManager[str]:
        stores = {"database_url": self.database_url, "redis_url": self.redis_url}
        given: dict[str, Any] = {**stores, "domain": str(TREASURY)}
        settings = Settings(**given)
        return serve(create_app(lambda: open_dependencies(settings)))


@pytest.fixture(scope="module")
def house(
    database_url: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    environment = {"PARLEY_DOMAIN": str(TREASURY), "OPENAI_BASE_URL": ""}
    with fleet(database_url, module_redis_url, tmp_path_factory.mktemp("agui"), environment) as crew:
        crew.start(1, application="workers.app")
        yield House(database_url, module_redis_url, crew)


async def say(url: str, thread: str, run_id: str, text: str | None = None, **more: Any) -> list[Any]:
    return await run(url, thread, run_id, text, domain="treasury", **more)


async def ledger(url: str, thread: str) -> list[tuple[Any, str]]:
    async with httpx.AsyncClient(base_url=url) as http:
        effects = (await http.get(f"/v1/sessions/{thread}/effects")).json()
    return [(line["arguments"], line["status"]) for line in effects]


async def test_two_interrupts_are_answered_in_reverse_order(house: House) -> None:
    """In separate runs with conversation between them, and then in one run."""
    async with house.gateway() as url:
        await say(url, "thread-1", "run-1", "pay the invoice of Acme")
        asked = await say(url, "thread-1", "run-2", "close the account of Madrid")
        waiting = interrupts_of(asked)
        assert set(waiting) == {"invoice_pay", "account_close"}
        talk = await say(url, "thread-1", "run-3", "who approves this?")
        assert interrupts_of(talk) == waiting
        assert await ledger(url, "thread-1") == []

        other = await say(url, "thread-0", "run-1", resume=[answer(waiting["account_close"])])
        assert other[0] == 404, "an approval of another thread"
        closed = await say(url, "thread-1", "run-4", resume=[answer(waiting["account_close"])])
        assert closed[-2].snapshot["completed"] == ["close_account"]
        assert interrupts_of(closed) == {"invoice_pay": waiting["invoice_pay"]}
        paid = await say(url, "thread-1", "run-5", resume=[answer(waiting["invoice_pay"])])
        assert "The invoice of Acme is paid." in text_of(paid)
        assert paid[-1].outcome.type == "success"
        assert await ledger(url, "thread-1") == [
            ({"branch": "Madrid"}, "done"),
            ({"supplier": "Acme"}, "done"),
        ]

        await say(url, "thread-2", "run-1", "pay the invoice of Globex")
        both = interrupts_of(await say(url, "thread-2", "run-2", "close the account of Oslo"))
        answers = [
            answer(both["account_close"], approved=False, reason="Oslo stays"),
            answer(both["invoice_pay"]),
        ]
        ended = await say(url, "thread-2", "run-3", resume=answers)
        assert "Oslo stays" in text_of(ended)
        assert ended[-1].outcome.type == "success"
        assert await ledger(url, "thread-2") == [({"supplier": "Globex"}, "done")]


async def test_an_interrupt_is_answered_after_a_restart(house: House) -> None:
    """A new gateway and worker know the thread's open interrupt; a repeated run decides once."""
    async with house.gateway() as url:
        asked = await say(url, "thread-3", "run-1", "pay the invoice of Acme")
        waiting = interrupts_of(asked)
    house.crew.workers[0].kill()
    house.crew.start(1, application="workers.app")

    async with house.gateway() as url:
        assert interrupts_of(await say(url, "thread-3", "run-2")) == waiting
        done = await say(url, "thread-3", "run-3", resume=[answer(waiting["invoice_pay"])])
        again = await say(url, "thread-3", "run-3", resume=[answer(waiting["invoice_pay"])])
        assert done[-2].snapshot["completed"] == ["pay_invoice"]
        assert again[-2].snapshot["turn_id"] == done[-2].snapshot["turn_id"]
        assert await ledger(url, "thread-3") == [({"supplier": "Acme"}, "done")]


async def test_an_answer_that_comes_too_late_does_nothing(house: House) -> None:
    async with house.gateway() as url:
        waiting = interrupts_of(await say(url, "thread-4", "run-1", "pay the invoice of Acme"))
        with psycopg.connect(house.database_url, autocommit=True) as connection:
            expire = "UPDATE approvals SET expires_at = now() - interval '1 s' WHERE approval_id = %s"
            connection.execute(expire, (waiting["invoice_pay"],))

        refused = await say(url, "thread-4", "run-2", resume=[answer(waiting["invoice_pay"])])

        assert refused[0] == 409
        assert "expired" in refused[1]
        assert await ledger(url, "thread-4") == []
