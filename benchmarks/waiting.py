"""Our worker with the agent that waits: `celery -A benchmarks.waiting worker`."""

from __future__ import annotations

from benchmarks.echo_agents import WaitingAgent
from orchestrator.bootstrap import Ports
from orchestrator.settings import load_settings
from workers.app import create_app


def build(_domain: str, _ports: Ports) -> WaitingAgent:
    return WaitingAgent()


app = create_app(load_settings(), build)
