"""A worker that doesn't release lanes on shutdown. Tests must detect it."""

from __future__ import annotations

from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import load_settings
from tests.integration.chaos.processes.counting import build
from workers.app import create_app


def _go_on(_: LaneRunner) -> None:
    """Leave without releasing lanes."""


LaneRunner.drain = _go_on  # type: ignore[method-assign]

app = create_app(load_settings(), build)
