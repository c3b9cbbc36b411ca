"""ST-4: branches whose users say yes at the same moment, on two workers: one booking, of which both are told."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.ports.lane import Lane
from orchestrator.runtime.lane import LaneRunner
from orchestrator.testing.live import MemoryWakeup
from orchestrator.turns.effect import Effect, LedgerEntry
from orchestrator.turns.lease import Lease
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, new_id
from tests.unit.gateway.repairs.broken_sessions import TO_MADRID, Site

SHORT, LONG = 5, 50


def meet(lane: Lane, met: asyncio.Barrier) -> Lane:
    """Have who finds nothing in the ledgers go on when the other worker has looked as well."""
    look = lane.find_effect

    async def find_effect(lease: Lease, effect: Effect) -> LedgerEntry | None:
        found = await look(lease, effect)
        if found is None:
            await met.wait()
        return found

    lane.find_effect = find_effect
    return lane


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
        LaneRunner(meet(await site.make_lane(), met), site.live, MemoryWakeup(), site.find_agent)
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
