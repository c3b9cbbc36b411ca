"""RT-35: requests that wait for a repair return when it is done."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.adapters import event_feed
from orchestrator.types import SessionId
from tests.unit.gateway.repairs.broken_sessions import TO_MADRID
from tests.unit.gateway.repairs.test_broken_sessions import open_site

SESSION = SessionId("session-1")


async def test_who_waits_for_a_repair_hears_of_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the event, the gateway would only poll."""
    async with open_site() as (site, _):
        await site.say(SESSION, TO_MADRID)
        epoch = (await site.look(SESSION))["epoch"]
        monkeypatch.setattr(event_feed, "LOOK_EVERY_S", 60)

        async with asyncio.timeout(20):
            made = await site.post(SESSION, [{"kind": "take_over"}], epoch)

        assert made.status_code == 200
