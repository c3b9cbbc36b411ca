"""PX-9: a tool that hangs, is deaf to cancellation, lies about its schema or gives 10 MB hurts nobody else's turns.

How long the others take is measured by `make bench-hurtful`; here it is that they go on and end well.
The others use a plain method, which needs a thread.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.candidates import Ours
from benchmarks.environment import settings_of
from orchestrator.bootstrap import open_ports
from orchestrator.tools.threads import SHARED_THREADS
from orchestrator.types import new_id
from parley.embedded import Stores
from parley.simulator import Simulator
from tests.integration.chaos.fleet import fleet
from tests.integration.tools.hurtful_domain import BAD, CROWDS, write_domain
from tests.integration.tools.hurtful_tools import InProcess, OnWorker, Place, many_at_once

MORE = 8
"""Calls that hang beyond those that all threads are taken by."""
EXPECTED = {
    "hang": "timeout",
    "deaf": "timeout",
    "lie": "server_error",
    "huge": "server_error",
    "nul": "server_error",
}


async def test_other_sessions_go_on_beside_each_of_them(tmp_path: Path) -> None:
    simulator = Simulator.of(write_domain(tmp_path))
    try:
        for name in BAD:
            using = asyncio.create_task(simulator.converse().say(f"use {name}"))
            others = await asyncio.gather(*(simulator.converse().say("use ring") for _ in range(5)))
            turn = await using
            assert {tool["status"] for tool in turn["tools"]} == {EXPECTED[name]}, name
            for other in others:
                assert [tool["status"] for tool in other["tools"]] == ["ok"], name
                assert other["completed"] == ["use_ring"], name
    finally:
        await simulator.converse().say("use release")


async def test_the_session_itself_goes_on_after_it(tmp_path: Path) -> None:
    simulator = Simulator.of(write_domain(tmp_path))
    try:
        talk = simulator.converse()
        for name in BAD:
            await talk.say(f"use {name}")
            turn = await talk.say("use ring" if name != "lie" else "please use ring")
            assert turn["completed"] == ["use_ring"], (name, turn["reply"])
    finally:
        await simulator.converse().say("use release")


async def others_go_on(place: Place, crowd: str) -> None:
    """While more calls hang than there are threads for tools, each answer of the others comes."""
    async with many_at_once(place, crowd, SHARED_THREADS + MORE):
        rings = (place.ring(new_id("session"), "use ring") for _ in range(30))
        await asyncio.wait_for(asyncio.gather(*rings), 45)


@pytest.mark.parametrize("crowd", CROWDS)
async def test_other_sessions_go_on_beside_a_crowd_that_hangs(crowd: str, tmp_path: Path) -> None:
    await others_go_on(InProcess(Simulator.of(write_domain(tmp_path))), crowd)


async def test_other_sessions_go_on_beside_a_crowd_that_hangs_on_the_same_worker(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """One Celery worker, Redis and PostgreSQL."""
    folder = tmp_path / "things"
    folder.mkdir()
    environment = {"PARLEY_DOMAIN": str(write_domain(folder))}
    with fleet(database_url, redis_url, tmp_path, environment) as crew:
        crew.start(application="workers.app", queues="turns", threads=16)
        async with open_ports(settings_of(Stores(database_url, redis_url))) as ports:
            await others_go_on(OnWorker(Ours(ports, [], "hurtful", folder.name)), next(iter(CROWDS)))
