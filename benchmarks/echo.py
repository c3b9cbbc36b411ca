"""Our worker with an agent that does the benchmark's work and nothing else: the runtime's own cost."""

from __future__ import annotations

import orjson

from benchmarks.work import FIRST, advance
from orchestrator.agent.durable import DurableSteps
from orchestrator.bootstrap import Ports
from orchestrator.settings import load_settings
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Utterance, Work
from orchestrator.turns.turn import TurnStatus
from workers.app import create_app


class EchoAgent:
    async def run_turn(self, lease: Lease, work: Work, steps: DurableSteps) -> TurnCommit:
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


def build(_domain: str, _ports: Ports) -> EchoAgent:
    return EchoAgent()


app = create_app(load_settings(), build)
