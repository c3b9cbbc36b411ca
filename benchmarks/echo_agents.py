"""Agents that do the benchmark's work and nothing else: what they cost is the runtime's own cost.

No application here: each one that is made follows the signals of its process's worker.
"""

from __future__ import annotations

import asyncio

import orjson

from benchmarks.work import FIRST, advance
from orchestrator.runtime.journal import Journal
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Utterance, Work
from orchestrator.turns.turn import TurnStatus

MODEL_S = 0.2
"""How long a turn of the waiting agent waits."""


class EchoAgent:
    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        state = orjson.loads(lease.state or FIRST)
        text = work.input.text or ""
        reply = advance(state, text)
        diff = {"turn": state["turn"], "messages": state["messages"][-2:]}
        return TurnCommit(
            status=TurnStatus.DONE,
            state=orjson.dumps(state),
            diff=orjson.dumps(diff),
            snapshot=False,
            result={"reply": reply},
            utterances=(Utterance("user", "text", text), Utterance("agent", "text", reply)),
            events=(Event(lease.session_id, "answer", work.turn_id, {"reply": reply}),),
        )


class WaitingAgent(EchoAgent):
    """Waits as turns wait for a model: workers are then limited by their lanes, not by CPU."""

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        await asyncio.sleep(MODEL_S)
        return await super().run_turn(lease, work, journal)
