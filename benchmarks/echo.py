"""A Parley worker whose agent does only the benchmark's work, to measure the runtime's overhead.

Start the worker with ``celery -A benchmarks.echo worker``. Each turn sleeps `BENCH_MODEL_S` seconds to simulate a
model. A number in the domain's name is the size of a new session's state: 98 KB for ``echo-98``.
"""

import asyncio

import orjson

from benchmarks.work import FIRST, advance, read_model_s, state_of
from orchestrator.bootstrap import Ports
from orchestrator.runtime.journal import Journal
from orchestrator.settings import load_settings
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Utterance, Work
from orchestrator.turns.turn import TurnStatus
from workers.app import create_app


class EchoAgent:
    deadline_s = 600.0

    def __init__(self, wait_s: float, first: bytes = FIRST) -> None:
        self._wait_s = wait_s
        self._first = first

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        if self._wait_s:  # simulates a model, so that session lanes limit throughput instead of the CPU
            await asyncio.sleep(self._wait_s)
        state = orjson.loads(lease.present_state or self._first)
        text = work.input.text or ""
        reply = advance(state, text)
        said, moved = state["messages"][-2:], state["stack"][-1:]
        diff = {
            "=": {"turn": state["turn"]},
            "~": {"messages": {"<": 2, "+": said}, "stack": {"<": 1, "+": moved}},
        }
        return TurnCommit(
            status=TurnStatus.DONE,
            state=orjson.dumps(state),
            diff=orjson.dumps(diff),
            snapshot=False,
            result={"reply": reply},
            utterances=(Utterance("user", "text", text), Utterance("agent", "text", reply)),
            events=(Event(lease.session_id, "answer", work.turn_id, {"reply": reply}),),
        )


def build(domain: str, _ports: Ports) -> EchoAgent:
    _, _, kilobytes = domain.partition("-")
    return EchoAgent(read_model_s(), state_of(int(kilobytes)) if kilobytes else FIRST)


app = create_app(load_settings(), build)
