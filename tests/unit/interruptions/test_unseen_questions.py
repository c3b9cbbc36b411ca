"""A yes that was on its way before a question was put: it does nothing again that may have been done (RT-9)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from orchestrator.turns.turn import IfBusy
from tests.unit.interruptions.judge import ASK
from tests.unit.interruptions.setting import Setting, write_mailroom

AGAIN = "Shall I do it again all the same?"


async def reply_to(setting: Setting, turn_id: Any) -> str:
    result = (await setting.read(turn_id)).result
    assert result is not None
    return result["reply"]


async def test_a_yes_that_was_typed_ahead_prints_no_label_twice(tmp_path: Any) -> None:
    for if_busy in (IfBusy.UNDERSTAND, IfBusy.ENQUEUE):
        setting = Setting.of(str(write_mailroom(tmp_path / if_busy, timeout_ms=50)))
        setting.if_busy, setting.simulator.now = if_busy, time.time()
        first = await setting.submit(ASK)
        setting.let_go["letters"].set()
        runner = setting.runner()
        running = asyncio.create_task(runner.run(setting.session))
        await setting.reached["label"].wait()
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
