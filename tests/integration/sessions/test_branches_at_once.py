"""ST-4: branches whose users say yes at the same moment, on two workers: one booking, of which both are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.runtime.lane import LaneRunner
from orchestrator.testing.live import MemoryWakeup
from orchestrator.turns.effect import Effect, LedgerEntry
from orchestrator.turns.lease import Lease
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, new_id
from tests.unit.gateway.repairs.broken_sessions import TO_MADRID, Site

SHORT, LONG = 5, 50


class Meeting:
    """A worker's lane: whoever finds nothing in the ledgers goes on when the other one has looked as well."""

    def __init__(self, lane: Any, met: asyncio.Barrier) -> None:
        self._lane, self._met = lane, met

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lane, name)

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        found = await self._lane.find_effect(lease, effect)
        if found is None and self._met.n_waiting < self._met.parties:
            await self._met.wait()
        return found


async def _say_yes_at_once(site: Site) -> list[str]:
    """Let two branches of an offer be agreed to at the same moment; gives what was wrong."""
    parent = SessionId(new_id("session"))
    await site.say(parent, TO_MADRID)
    branches: list[SessionId] = []
    for _ in range(2):
        made = await site.http.post(f"/v1/sessions/{parent}/branch", json={})
        branches.append(SessionId(made.json()["session_id"]))
        await site.say(branches[-1], "yes")  # the offer is made anew
    before = len(site.airline.calls)
    met = asyncio.Barrier(2)
    turns = [await site.submit(branch, "yes") for branch in branches]
    workers = [
        LaneRunner(Meeting(await site.make_lane(), met), site.live, MemoryWakeup(), site.find_agent)
        for _ in branches
    ]
    await asyncio.gather(*(worker.run(branch) for worker, branch in zip(workers, branches, strict=True)))
    told = [(await site.inbox.turn(DEFAULT_TENANT, turn)).result or {} for turn in turns]
    booked = await site.simulator.records[DEFAULT_TENANT].find("bookings", {"session": parent})
    return _judge(told, booked, len(site.airline.calls) - before)


def _judge(told: list[JsonObject], booked: list[JsonObject], calls: int) -> list[str]:
    if calls != 1 or len(booked) != 1:
        return [f"{calls} calls made {len(booked)} bookings"]
    reference = booked[0]["booking_ref"]
    return [f"{reference} is not told: {turn}" for turn in told if reference not in turn.get("reply", "")]


async def _repeat(place: tuple[Site, dict[str, dict[str, str]]], rounds: int) -> list[str]:
    site, _ = place
    site.airline.takes_s = 0.2
    return [wrong for _ in range(rounds) for wrong in await _say_yes_at_once(site)]


async def test_two_branches_that_book_at_one_moment_book_once(
    site: tuple[Site, dict[str, dict[str, str]]],
) -> None:
    assert await _repeat(site, SHORT) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_fifty_times_over(site: tuple[Site, dict[str, dict[str, str]]]) -> None:
    assert await _repeat(site, LONG) == []
