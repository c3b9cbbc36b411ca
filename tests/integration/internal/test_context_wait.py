"""A blocked flow gets help from `gather_context` on real workers, and waits durably (PX-16)."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from orchestrator.ports.memory.context import CONTEXT_READY, GATHER_CONTEXT, HAND_OVER_CONTEXT
from orchestrator.ports.memory.scratchpad import EntryKind
from orchestrator.ports.runs.status import RunStatus
from orchestrator.turns.turn import TurnKind
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from tests.integration.chaos.fleet import Fleet, fleet
from tests.integration.depot import DEPOT, WITHIN_S, DepotTalk
from workers.internal.tools import make_tools

TURNS, INTERNAL = "turns,submissions", "internal,urgent"


class Talk(DepotTalk):
    async def told(self) -> JsonObject:
        """Return the system turn with the findings, when it is finished."""
        ends_at = time.monotonic() + WITHIN_S
        while True:
            for turn in await self.ports.stores.inbox.turns(DEFAULT_TENANT, session_id=self.session_id):
                action = turn.input.action or {}
                if turn.input.kind is TurnKind.SYSTEM and action["name"] == CONTEXT_READY and turn.result:
                    return turn.result
            assert time.monotonic() < ends_at, "nobody came back"
            await asyncio.sleep(0.05)

    async def runs(self) -> dict[str, RunStatus]:
        found = await self.ports.stores.runs.list(DEFAULT_TENANT, session_id=self.session_id)
        return {run.flow: run.status for run in found}


@contextmanager
def depot(tmp_path: Path, database_url: str, redis_url: str, resilience: str) -> Iterator[Fleet]:
    """Yield stores for workers with their own depot."""
    folder = tmp_path / "depot"
    shutil.copytree(DEPOT, folder)
    with (folder / "domain.yaml").open("a") as settings:
        settings.write(f"resilience: {resilience}\n")
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_DOMAIN": str(folder)}) as crew:
        yield crew


@asynccontextmanager
async def talk(crew: Fleet, session: str) -> AsyncIterator[Talk]:
    async with crew.ports() as ports:
        yield Talk(ports, SessionId(session))


async def test_what_an_earlier_task_knew_is_found_within_the_turn(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with depot(tmp_path, database_url, redis_url, "{context_in_turn_s: 20, context_wait_s: 30}") as crew:
        crew.start(1, application="workers.app", queues=f"{TURNS},{INTERNAL}", threads=16)
        async with talk(crew, "asker") as t:
            assert (await t.say("put part P0001 on shelf S07"))["completed"] in ([], ["store_part"])
            stored = await t.say("yes")
            turn = await t.say("fetch part P0001")
            entries = await make_tools(t.ports)["scratchpad"].read(DEFAULT_TENANT, t.session_id)
            runs = await t.runs()

    assert stored["flows"] == []
    assert turn["flows"] == [] or turn["flows"][0]["slots"] == {"part": "P0001", "shelf": "S07"}
    assert runs == {GATHER_CONTEXT: RunStatus.DONE}
    found = [entry for entry in entries if entry.kind is EntryKind.FINDING]
    assert {"shelf": "S07"} in [entry.data for entry in found]


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_the_wait_outlives_the_worker_that_began_it(
    database_url: str, redis_url: str, tmp_path: Path, known: bool
) -> None:
    """No search is possible while the flow is parked. Its worker is killed, and other workers finish both."""
    resilience = "{context_in_turn_s: 0, context_wait_s: 600, max_recovery_attempts: 0}"
    with depot(tmp_path, database_url, redis_url, resilience) as crew:
        [first] = crew.start(1, application="workers.app", queues=TURNS, threads=8)
        async with talk(crew, f"patient-{known}") as t:
            if known:
                await t.say("put part P0001 on shelf S07")
                await t.say("yes")
            parked = await t.say("fetch part P0001")
            assert [flow["reason"] for flow in parked["flows"]] == ["awaiting_context"]
            first.kill()
            crew.start(1, application="workers.app", queues=f"{TURNS},{INTERNAL}", threads=16)
            told = await t.told()
            runs = await t.runs()

    assert runs == {GATHER_CONTEXT: RunStatus.DONE, HAND_OVER_CONTEXT: RunStatus.DONE}
    if known:
        assert told["flows"] == [] or told["flows"][0]["slots"] == {"part": "P0001", "shelf": "S07"}
        assert told["completed"] == ["fetch_part"] or told["ambiguity"]["level"] == "confirmation"
    else:
        assert told["reply"] == "Which shelf is it on?"
