"""The errand is thought about before it is run: a model call, journaled as such."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from typing import Any

from orchestrator.pex.ending import Ending
from orchestrator.pex.execution import Execution
from orchestrator.pex.policy import BasePolicy, Step


class RunErrand(BasePolicy):
    dact = "run_errand"

    def steps(self) -> tuple[Step, ...]:
        steps = super().steps()
        place = steps.index(self.invoke)
        return (*steps[:place], self.think, *steps[place:])

    async def think(self, run: Execution) -> Ending | None:
        """Ask the model once, whatever happens to this process afterwards."""
        code = run.value("code")

        async def ask(key: str) -> Any:
            return await asyncio.to_thread(_complete, code, key)

        await run.world.steps.call("model:errand:1", "model", {"code": code}, ask, idempotent=True)
        return None


def _complete(code: str, key: str) -> Any:
    body = json.dumps({"code": code, "key": key, "pid": os.getpid()}).encode()
    request = urllib.request.Request(f"{os.environ['ERRANDS_URL']}/complete", body, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
