"""The time a skill has: its tools' time-outs plus overhead, and never more than the turn (PX-9)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from orchestrator.domain.model import SkillSpec
from orchestrator.models.engineer import PromptEngineer
from orchestrator.pex.execution import Execution
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.types import JsonObject


class SkillTimedOut(Exception):
    """The skill's time is used up."""


class Clock:
    def __init__(self, allowed_s: float, turn_ends: float | None) -> None:
        """`turn_ends`: on the monotonic clock."""
        mine = time.monotonic() + allowed_s
        self.ends = mine if turn_ends is None else min(mine, turn_ends)

    @property
    def left_s(self) -> float:
        return self.ends - time.monotonic()

    def check(self) -> None:
        """Raise SkillTimedOut when nothing more may be begun."""
        if self.left_s <= 0:
            raise SkillTimedOut

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Stop what is done within when the time is over, with SkillTimedOut."""
        self.check()
        deadline = asyncio.timeout(self.left_s)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise SkillTimedOut from error


PROMPT = "pex_reflect"
SCHEMA: JsonObject = {
    "type": "object",
    "required": ["good", "faults"],
    "properties": {
        "good": {"type": "boolean"},
        "faults": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 300}},
    },
}


def worth_reflecting(skill: SkillSpec) -> bool:
    return skill.reflect and bool(skill.criteria)


async def find_faults(
    run: Execution, skill: SkillSpec, engineer: PromptEngineer, clock: Clock, data: JsonObject
) -> list[str]:
    """What is to be corrected; empty when the result is good, or when nobody could judge it."""
    variables = {
        "task": skill.description,
        "criteria": list(skill.criteria),
        "utterance": run.context.text,
        "slots": run.flow.values(),
        "result": data,
    }
    call = run.context.call.for_flow(run.flow.flow_id)
    try:
        async with clock.limit():
            verdict = await engineer.structured(PROMPT, variables, SCHEMA, call)
    except (*MODEL_FAILURES, SkillTimedOut) as error:
        why = f"The result could not be judged: {error or 'its time was over'}"
        run.context.log.failed_check("pex", "reflection", why, run.flow.flow_id)
        return []
    return [] if verdict["good"] else [str(fault) for fault in verdict["faults"]]
