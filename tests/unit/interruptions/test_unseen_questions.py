"""Confirmations sent before their question was displayed: they repeat no effect that may have happened (RT-9)."""

from __future__ import annotations

import time
from typing import Any

from orchestrator.turns.turn import IfBusy, Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from tests.unit.gateway.repairs.broken_sessions import TO_MADRID, Site
from tests.unit.gateway.repairs.test_broken_sessions import open_site
from tests.unit.interruptions.setting import Setting, write_mailroom

SESSION = SessionId("clicked")
AGAIN = "Shall I do it again anyway?"


async def reply_to(setting: Setting, turn_id: Any) -> str:
    result = (await setting.read(turn_id)).result
    assert result is not None
    return result["reply"]


async def test_a_yes_that_was_typed_ahead_prints_no_label_twice(tmp_path: Any) -> None:
    for if_busy in (IfBusy.UNDERSTAND, IfBusy.ENQUEUE):
        setting = Setting.of(str(write_mailroom(tmp_path / if_busy, timeout_ms=50)))
        setting.if_busy, setting.simulator.now = if_busy, time.time()
        first, runner, running = await setting.run_until("label")
        early = await setting.submit("yes")
        setting.simulator.now += 1
        await running

        assert AGAIN in await reply_to(setting, first)
        assert AGAIN in await reply_to(setting, early)
        assert setting.calls == {("label", "bob"): 1}

        setting.simulator.now += 100
        setting.go_on()
        seen = await setting.submit("yes")
        await runner.run(setting.session)
        assert AGAIN not in await reply_to(setting, seen)
        assert setting.calls == {("label", "bob"): 2, ("parcel", "bob"): 1}


async def test_a_button_of_the_offer_does_not_book_a_second_time() -> None:
    """The button confirms one booking. A separate button confirms another booking."""
    async with open_site() as (site, _):
        offer = await site.say(SESSION, TO_MADRID)
        site.airline.silent, site.airline.books = True, True
        asked = await click(site, "confirm", offer)
        assert AGAIN in asked["reply"]
        site.airline.silent = False
        calls = len(site.airline.calls)

        stale = await click(site, "confirm", offer)
        assert "Booked" not in stale["reply"]
        assert len(site.airline.calls) == calls

        meant = await click(site, "confirm", asked)
        assert "Booked" in meant["reply"]
        assert len(site.airline.calls) == calls + 1


async def click(site: Site, name: str, answer: JsonObject) -> JsonObject:
    payload = next(one["payload"] for one in answer["actions"] if one["name"] == name)
    site.simulator.now += 20
    given = TurnInput(action={"name": name, "payload": payload}, form="action")
    receipt = await site.inbox.submit(Submission(SESSION, given, DEFAULT_TENANT))
    await site.runner.run(SESSION)
    return (await site.inbox.turn(DEFAULT_TENANT, receipt.turn_id)).result or {}
