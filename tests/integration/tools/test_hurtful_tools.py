"""PX-9: hanging, uncancelable, wrong or flooding tools don't affect other sessions' turns.

`make bench-hurtful` measures the duration of other turns. This test checks that they continue and succeed.
They use a synchronous method, which needs a thread.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from parley.simulator import Simulator
from tests.integration.tools.hurtful_domain import BAD, write_domain

EXPECTED = {
    "hang": "timeout",
    "deaf": "timeout",
    "lie": "server_error",
    "huge": "server_error",
    "nul": "server_error",
}


async def test_other_sessions_and_the_session_itself_go_on(tmp_path: Path) -> None:
    simulator = Simulator.of(write_domain(tmp_path))
    try:
        talk = simulator.converse()
        for name in BAD:
            using = asyncio.create_task(talk.say(f"use {name}"))
            others = await asyncio.gather(*(simulator.converse().say("use ring") for _ in range(5)))
            turn = await using
            assert {tool["status"] for tool in turn["tools"]} == {EXPECTED[name]}, name
            for other in others:
                assert [tool["status"] for tool in other["tools"]] == ["ok"], name
                assert other["completed"] == ["use_ring"], name
            after = await talk.say("use ring" if name != "lie" else "please use ring")
            assert after["completed"] == ["use_ring"], (name, after["reply"])
    finally:
        await simulator.converse().say("use release")
