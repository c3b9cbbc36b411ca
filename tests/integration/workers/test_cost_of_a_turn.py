"""RT-20: limits of a turn's cost, as counts that are equal on every machine."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Final

import pytest

from benchmarks.environment import open_lanes
from benchmarks.profile import CALLS, WAL_BYTES, Calls, Talk
from benchmarks.turns import BOOKING
from orchestrator.agent.steps.record import NOTES
from orchestrator.types import DEFAULT_TENANT
from parley.embedded import Stores
from workers.outbox import OutboxSender, note_into

BOUNDS = {
    CALLS: 2_720,
    "JSON decoded": 32,
    "JSON encoded": 60,
    "statements": 5.5,
    "Redis commands": 1.5,
    "metric observations": 15,
    WAL_BYTES: 11_000,
}
"""Maximum for one turn of the booking conversation: claim, interpretation, tools and commit, without
submission.
"""

MOST_TALKS: Final = 6
MOST_FOR_NOTES: Final = 6
"""Statements: take, save, acknowledge. Another statement saves a session's second note."""


@pytest.fixture
async def talk(database_url: str, redis_url: str) -> AsyncIterator[Talk]:
    async with open_lanes(Stores(database_url, redis_url)) as (ports, lanes):
        yield Talk(ports, lanes, sessions=2)


async def test_a_turn_costs_no_more_than_these(talk: Talk) -> None:
    """The minimum of several conversations, because waiting for a CPU causes more renewals and polls."""
    await talk.take(2 * len(BOOKING))
    least = dict.fromkeys(BOUNDS, math.inf)
    for _ in range(MOST_TALKS):
        calls = Calls()
        await talk.take(len(BOOKING), calls)
        counted = calls.of_one(talk.sessions * len(BOOKING))
        least = {name: min(number, counted.get(name, number)) for name, number in least.items()}
        if all(least[name] <= bound for name, bound in BOUNDS.items() if name != WAL_BYTES):
            break
    for _ in range(MOST_TALKS):  # other writes of the server, such as statistics, only add to it
        least[WAL_BYTES] = min(least[WAL_BYTES], await talk.log_bytes(2 * len(BOOKING)))
        if least[WAL_BYTES] <= BOUNDS[WAL_BYTES]:
            break
    assert all(0 < least[name] <= bound for name, bound in BOUNDS.items()), least


async def test_notes_of_many_sessions_are_brought_by_a_handful_of_statements(
    database_url: str, redis_url: str
) -> None:
    """Notes of turns are taken, saved and acknowledged for all sessions together."""
    async with open_lanes(Stores(database_url, redis_url)) as (ports, lanes):
        talk = Talk(ports, lanes, sessions=8, prefix="noting")
        sender = OutboxSender(ports.stores.outbox, {NOTES: note_into(ports.shared.scratchpad)})
        await talk.take(len(BOOKING))
        sender.nudge()
        await sender.send_next()  # a session's first notes create its scratchpad
        await talk.take(len(BOOKING))
        waiting = await ports.stores.database.fetch_all("SELECT FROM outbox WHERE kind = 'notes'", {})
        calls = Calls()
        sender.nudge()
        calls.begin()
        await sender.send_next()
        calls.end()

        left = await ports.stores.database.fetch_all("SELECT FROM outbox WHERE kind = 'notes'", {})
        notes = [await ports.shared.scratchpad.read(DEFAULT_TENANT, name) for name in talk.names]
        assert len(waiting) >= talk.sessions
        assert left == []
        assert all(notes)
        assert calls.of_one(1)["statements"] <= MOST_FOR_NOTES
