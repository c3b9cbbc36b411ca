"""ST-4: branches that come to the same calls at the same moment, in two worker processes: each call is made once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from orchestrator.turns.turn import TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.integration.chaos.test_stopped_workers import APPLICATION, Setting
from tests.integration.interruptions.test_random_moments import Outside, mailroom

PAIRS = 8
MOST_ROUNDS = 8
"""Which worker takes a turn nobody can say: there are rounds until the branches of a pair have met in both."""
TOLD = "Another branch of this conversation has done this already."


async def _branch_off(setting: Setting, parent: str) -> list[SessionId]:
    """Ask for a parcel up to the question to whom, and go on from there twice."""
    await setting.ended(parent, await setting.submit(parent, "send a parcel"))
    sessions = setting.ports.stores.sessions
    return [(await sessions.branch(DEFAULT_TENANT, SessionId(parent))).session_id for _ in range(2)]


async def _watch_owners(database_url: str, owners: dict[str, str]) -> None:
    """Note who holds each lane, as long as one asks."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        while True:
            rows = await connection.execute(
                "SELECT session_id, lease_owner FROM lanes WHERE lease_owner IS NOT NULL"
            )
            owners |= dict(await rows.fetchall())
            await asyncio.sleep(0.02)


@pytest.mark.timeout(300)
async def test_two_processes_make_a_call_of_two_branches_once(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    world, owners = Outside(), dict[str, str]()
    async with mailroom(database_url, redis_url, tmp_path, world) as setting:
        await asyncio.to_thread(setting.crew.start, 1, application=APPLICATION)
        watching = asyncio.create_task(_watch_owners(database_url, owners))
        pairs: list[list[SessionId]] = []
        ended: dict[SessionId, TurnRecord] = {}
        for number in range(MOST_ROUNDS):
            new = [await _branch_off(setting, f"parent-{number}-{one}") for one in range(PAIRS)]
            sessions = [session for pair in new for session in pair]
            turns = await asyncio.gather(*(setting.submit(session, "to Bob") for session in sessions))
            waiting = (setting.ended(*one) for one in zip(sessions, turns, strict=True))
            ended |= dict(zip(sessions, await asyncio.gather(*waiting), strict=True))
            pairs += new
            if any(owners[first] != owners[second] for first, second in new):
                break
        watching.cancel()
        replies = {session: (turn.result or {})["reply"] for session, turn in ended.items()}
        late = next(session for session, reply in replies.items() if reply.startswith(TOLD))
        left = await setting.ended(late, await setting.submit(late, "no, leave it"))

    def made(pair: list[SessionId]) -> dict[str, int]:
        calls: Any = sum((world.calls[session] for session in pair), start=type(world.calls[pair[0]])())
        return {f"{kind} {recipient}": count for (kind, recipient), count in calls.items()}

    assert [made(pair) for pair in pairs] == [{"label bob": 1, "parcel bob": 1}] * len(pairs)
    assert {turn.status for turn in ended.values()} == {TurnStatus.DONE}
    for pair in pairs:
        told = sorted(replies[session] for session in pair)
        assert told[0].startswith(TOLD), told
        assert told[1] == "Done: send parcel. The parcel id is P-bob."
    assert left.result is not None
    assert "cannot tell" not in left.result["reply"], "it is known"
    assert any(owners[first] != owners[second] for first, second in pairs), "no pair was in two processes"
