"""A wrapper that kills an agent's process at planned points of its journal steps. For tests only."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import TurnAgent
from orchestrator.turns.lease import Lease, TurnCommit, Work

_CODE = re.compile(r"E[0-9]{4}")


class DyingSteps:
    """The journal of a turn, with planned deaths before, in and after each step."""

    def __init__(self, steps: Journal, code: str) -> None:
        self._steps = steps
        self._code = code
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)

    async def call(
        self, key: str, kind: str, request: Any, run: Callable[[str], Awaitable[Any]], **options: Any
    ) -> Any:
        step = self._name(key, kind)

        async def fragile(idempotency_key: str) -> Any:
            await die_at(self._code, f"{step}/recorded")
            result = await run(idempotency_key)
            await die_at(self._code, f"{step}/answered")
            return result

        await die_at(self._code, f"{step}/before")
        outcome = await self._steps.call(key, kind, request, fragile, **options)
        await die_at(self._code, f"{step}/after")
        return outcome

    def _name(self, key: str, kind: str) -> str:
        """Return a step's name: a tool's key, or the position of a model call, whose key is a digest."""
        if kind != "model":
            return key
        self._asked += 1
        return f"model:{self._asked}"


class DyingAgent:
    def __init__(self, agent: TurnAgent) -> None:
        self._agent = agent

    @property
    def deadline_s(self) -> float:
        return self._agent.deadline_s

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        code = _CODE.search(work.input.text or "")
        if code is None:
            return await self._agent.run_turn(lease, work, journal)
        dying: Any = DyingSteps(journal, code[0])
        commit = await self._agent.run_turn(lease, work, dying)
        await die_at(code[0], "commit/before")
        return commit


async def die_at(code: str, point: str) -> None:
    """Ask the test for the planned deaths, and die here if planned."""
    if await asyncio.to_thread(_is_to_die, code, point):
        os.kill(os.getpid(), signal.SIGKILL)


def _is_to_die(code: str, point: str) -> bool:
    body = json.dumps({"code": code, "point": point, "pid": os.getpid()}).encode()
    request = urllib.request.Request(f"{os.environ['ERRANDS_URL']}/point", body, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["die"]
