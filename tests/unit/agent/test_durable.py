"""Steps that run once, despite crashes between attempts (RT-8, RT-9)."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import Refused, StepFailed, StepMismatch, Unavailable
from orchestrator.runtime.journal import Journal
from orchestrator.turns.step import UnknownOutcome
from tests.unit.running import Attempts, ScriptedTool

DONE = {"status": "done"}


async def call(steps: Journal, tool: ScriptedTool, *, idempotent: bool = False) -> Any:
    return await steps.call("k", "tool", {}, tool, idempotent=idempotent)


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_finished_step_is_answered_from_the_journal(idempotent: bool) -> None:
    attempts, tool = Attempts(), ScriptedTool(DONE)
    first = await call(await attempts.begin(), tool, idempotent=idempotent)

    again = await call(await attempts.crash(), tool, idempotent=idempotent)

    assert first == again == DONE
    assert len(tool.keys) == 1


async def test_a_call_whose_end_nobody_saw_is_not_repeated() -> None:
    attempts, tool = Attempts(), ScriptedTool(RuntimeError("the connection broke"))
    with pytest.raises(RuntimeError):
        await call(await attempts.begin(), tool)

    steps = await attempts.crash()

    assert await call(steps, tool) == UnknownOutcome("k", f"{steps.turn_id}:k")
    assert len(tool.keys) == 1


async def test_an_unknown_outcome_can_be_settled() -> None:
    attempts, tool = Attempts(), ScriptedTool(Unavailable("no answer"))
    steps = await attempts.begin()
    with pytest.raises(Unavailable):
        await call(steps, tool)

    await steps.settle(UnknownOutcome("k", "key"), "tool", {}, "it happened")

    assert await call(await attempts.crash(), tool) == "it happened"


async def test_an_idempotent_call_is_made_again_with_the_same_key() -> None:
    attempts, tool = Attempts(), ScriptedTool(Unavailable("no answer"), DONE)
    with pytest.raises(Unavailable):
        await call(await attempts.begin(), tool, idempotent=True)

    assert await call(await attempts.crash(), tool, idempotent=True) == DONE
    assert len(tool.keys) == 2
    assert len(set(tool.keys)) == 1


async def test_a_named_failure_is_told_again_and_not_tried_again() -> None:
    attempts, tool = Attempts(), ScriptedTool(Refused("sold out"))
    with pytest.raises(Refused):
        await call(await attempts.begin(), tool)

    with pytest.raises(StepFailed, match="sold out") as told:
        await call(await attempts.crash(), tool)

    assert told.value.cause == "refused"
    assert len(tool.keys) == 1


async def test_a_key_that_changed_its_meaning_is_refused() -> None:
    attempts, tool = Attempts(), ScriptedTool(DONE)
    await (await attempts.begin()).call("k", "tool", {"a": 1, "b": 2}, tool, idempotent=True)
    steps = await attempts.crash()

    assert await steps.call("k", "tool", {"b": 2, "a": 1}, tool, idempotent=True) == DONE
    with pytest.raises(StepMismatch):
        await steps.call("k", "tool", {"a": 2, "b": 2}, tool, idempotent=True)
