"""Our worker with the echo agent: `celery -A benchmarks.echo worker`."""

from __future__ import annotations

from benchmarks.echo_agents import EchoAgent
from orchestrator.bootstrap import Ports
from orchestrator.settings import load_settings
from workers.app import create_app


def build(_domain: str, _ports: Ports) -> EchoAgent:
    return EchoAgent()


app = create_app(load_settings(), build)
