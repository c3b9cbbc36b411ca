"""The real agents in a process that is killed once after each step of a turn.

A step is a journaled call. A call with side effects has two deaths: after its effect but before recording it,
and after recording.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from orchestrator.bootstrap import Ports, build_agent
from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import TurnAgent
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.step import UnknownOutcome

KILLS = "PARLEY_TEST_KILLS"
"""A folder with a file for each kill, so that each kill happens once."""
SPARED = "spared"
"""Prefix of session names without kills."""


def die_once(name: str) -> None:
    name = name.replace(":", "_").replace("/", "_")
    try:
        Path(os.environ[KILLS], name).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlySteps:
    """The journal of a turn. Each of its calls kills the process once."""

    def __init__(self, journal: Journal, turn_id: str) -> None:
        self._steps = journal
        self._turn_id = turn_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)

    async def call(
        self, key: str, kind: str, request: Any, run: Callable[[str], Awaitable[Any]], **options: Any
    ) -> Any:
        async def run_and_die(idempotency_key: str) -> Any:
            result = await run(idempotency_key)
            if not options["idempotent"]:
                die_once(f"{self._turn_id}-{key}-unrecorded")
            return result

        result = await self._steps.call(key, kind, request, run_and_die, **options)
        die_once(f"{self._turn_id}-{key}-recorded")
        return result

    async def settle(self, unknown: UnknownOutcome, *more: Any) -> None:
        await self._steps.settle(unknown, *more)
        die_once(f"{self._turn_id}-{unknown.key}-settled")


class DeadlyAgent:
    def __init__(self, agent: TurnAgent) -> None:
        self._agent = agent

    @property
    def deadline_s(self) -> float:
        return self._agent.deadline_s

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        if lease.session_id.startswith(SPARED):
            return await self._agent.run_turn(lease, work, journal)
        return await self._agent.run_turn(lease, work, DeadlySteps(journal, work.turn_id))  # type: ignore[arg-type]


def build(domain: str, ports: Ports) -> TurnAgent:
    return DeadlyAgent(build_agent(domain, ports))  # type: ignore[return-value]
