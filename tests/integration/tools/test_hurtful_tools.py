"""PX-9: a tool that hangs, is deaf to cancellation, lies about its schema or gives 10 MB hurts nobody else's turns.

How long the others take is measured by `python -m benchmarks.hurtful_tools`; here it is that they go on and end well.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.hurtful_tools import BAD, write_domain
from orchestrator.rehearsal import Rehearsal

EXPECTED = {"hang": "timeout", "deaf": "timeout", "lie": "server_error", "huge": "server_error"}


async def test_other_sessions_go_on_beside_each_of_them(tmp_path: Path) -> None:
    rehearsal = Rehearsal.of(write_domain(tmp_path))
    try:
        for name in BAD:
            using = asyncio.create_task(rehearsal.converse().say(f"use {name}"))
            others = await asyncio.gather(*(rehearsal.converse().say("use ring") for _ in range(5)))
            turn = await using
            assert {tool["status"] for tool in turn["tools"]} == {EXPECTED[name]}, name
            for other in others:
                assert [tool["status"] for tool in other["tools"]] == ["ok"], name
                assert other["completed"] == ["use_ring"], name
    finally:
        await rehearsal.converse().say("use release")


async def test_the_session_itself_goes_on_after_it(tmp_path: Path) -> None:
    rehearsal = Rehearsal.of(write_domain(tmp_path))
    try:
        talk = rehearsal.converse()
        for name in BAD:
            await talk.say(f"use {name}")
            turn = await talk.say("use ring" if name != "lie" else "please use ring")
            assert turn["completed"] == ["use_ring"], (name, turn["reply"])
    finally:
        await rehearsal.converse().say("use release")
