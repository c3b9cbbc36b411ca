"""A summary in the state after the twentieth turn, on real workers (IF-12, RT-4).

The turn's outbox starts it, the flow proposes it, and the lane applies it.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from orchestrator.bootstrap import Ports, open_ports
from orchestrator.ports.runs.records import RunRecord
from orchestrator.ports.runs.status import ENDED, RunStatus
from orchestrator.settings import Settings
from orchestrator.turns.turn import TurnKind
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.conversation import submit
from tests.integration.chaos.fleet import fleet

SESSION = SessionId("talkative")
TURNS = 22
WITHIN_S = 90


async def test_a_long_conversation_gets_a_summary(database_url: str, redis_url: str, tmp_path: Path) -> None:
    settings = Settings(DATABASE_URL=database_url, REDIS_URL=redis_url)
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_DOMAIN": "travel"}) as crew:
        crew.start(1, application="workers.app", queues="turns,submissions,internal,urgent", threads=16)
        async with open_ports(settings) as ports:
            said = [f"list my bookings please, number {number}" for number in range(TURNS)]
            receipts = [await submit(ports, SESSION, text, "travel") for text in said]
            answers = [
                await ports.waiter.finished(DEFAULT_TENANT, SESSION, receipt.turn_id, WITHIN_S)
                for receipt in receipts
            ]
            runs = await _all_ended(ports)
            state = await _summarised(ports)
            turns = await ports.stores.inbox.turns(DEFAULT_TENANT, session_id=SESSION)

    assert all(answer.result and answer.result["reply"] for answer in answers)
    assert {run.flow: run.status for run in runs} == {
        "summarize_session": RunStatus.DONE,
        "distil_preferences": RunStatus.SKIPPED,
        "promote_context": RunStatus.SKIPPED,
        "tidy_scratchpad": RunStatus.DONE,
    }
    assert 20 <= state["summary"]["through_turn"] <= TURNS
    assert "bookings" in state["summary"]["text"]
    assert state["turn"] == TURNS
    assert len(state["messages"]) == 2 * TURNS
    [decided] = [turn.result for turn in turns if turn.input.kind is TurnKind.SYSTEM]
    assert decided is not None
    assert decided["proposal"]["decision"] in {"applied", "rebased"}


async def _all_ended(ports: Ports) -> list[RunRecord]:
    ends_at = time.monotonic() + WITHIN_S
    while True:
        runs = await ports.stores.runs.list(DEFAULT_TENANT, session_id=SESSION)
        if runs and all(run.status in ENDED for run in runs):
            return runs
        assert time.monotonic() < ends_at, runs
        await asyncio.sleep(0.05)


async def _summarised(ports: Ports) -> dict:
    ends_at = time.monotonic() + WITHIN_S
    while True:
        state = (await ports.stores.sessions.get(DEFAULT_TENANT, SESSION)).state
        if state is not None and "summary" in state:
            return state
        assert time.monotonic() < ends_at, "no summary"
        await asyncio.sleep(0.05)
