"""The echo agent that waits as turns wait for a model: workers are then limited by their lanes, not by CPU."""

from __future__ import annotations

import asyncio

from benchmarks.echo import EchoAgent
from orchestrator.agent.durable import DurableSteps
from orchestrator.bootstrap import Ports
from orchestrator.settings import load_settings
from orchestrator.turns.lease import Lease, TurnCommit, Work
from workers.app import create_app

MODEL_S = 0.2


class WaitingAgent(EchoAgent):
    async def run_turn(self, lease: Lease, work: Work, steps: DurableSteps) -> TurnCommit:
        await asyncio.sleep(MODEL_S)
        return await super().run_turn(lease, work, steps)


def build(_domain: str, _ports: Ports) -> WaitingAgent:
    return WaitingAgent()


app = create_app(load_settings(), build)
