"""Effects of earlier turns, which a flow repeats only after a decision (RT-9, RT-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import Unavailable
from orchestrator.runtime.journal import Journal
from orchestrator.turns.effect import Effect, LedgerStatus, fingerprint_effect
from orchestrator.turns.lease import TurnCommit
from orchestrator.turns.step import UnknownOutcome
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import FlowId, ToolId
from tests.cases import for_each
from tests.unit.running import Attempts, ScriptedTool

SESSION = Attempts.session
DONE = {"status": "done"}


def effect(fingerprint: str = "f1", flow_id: str = "flow_1", **more: Any) -> Effect:
    return Effect(
        fingerprint=fingerprint,
        flow_id=FlowId(flow_id),
        tool_id=ToolId("pay"),
        arguments={},
        slots={},
        judge=lambda result: LedgerStatus(result["status"]),
        **more,
    )


class Turns(Attempts):
    """The turns of one session, whose attempts may fail."""

    async def end(self) -> None:
        commit = TurnCommit(TurnStatus.DONE, b"{}", b"{}", snapshot=False, result={})
        await self.lane.commit(self.lease, commit)

    async def next(self) -> Journal:
        await self.end()
        return await self.begin()

    def status(self, fingerprint: str = "f1") -> str:
        return self.store.effects[SESSION, fingerprint].status.value


async def pay(steps: Journal, tool: ScriptedTool, does: Effect, key: str = "tool:pay:1") -> Any:
    return await steps.call(key, "tool", {}, tool, idempotent=False, effect=does)


async def test_the_same_effect_is_answered_from_the_ledger_in_a_later_turn() -> None:
    turns, tool = Turns(), ScriptedTool(DONE)
    first = await pay(await turns.begin(), tool, effect())

    again = await pay(await turns.next(), tool, effect())

    assert first == again == DONE
    assert len(tool.keys) == 1
    assert turns.status() == "done"


async def test_another_flow_or_other_arguments_are_another_effect() -> None:
    turns, tool = Turns(), ScriptedTool(DONE)
    await pay(await turns.begin(), tool, effect("f1"))
    await pay(await turns.next(), tool, effect("f2"))
    assert len(tool.keys) == 2


async def test_what_is_wanted_again_is_done_again_with_a_key_of_its_own() -> None:
    turns, tool = Turns(), ScriptedTool(DONE)
    await pay(await turns.begin(), tool, effect())
    await pay(await turns.next(), tool, effect(again=True))
    assert len(set(tool.keys)) == 2


async def test_what_failed_or_was_undone_may_be_done() -> None:
    turns, tool = Turns(), ScriptedTool({"status": "failed"}, DONE, DONE)
    await pay(await turns.begin(), tool, effect())
    assert turns.status() == "failed"
    steps = await turns.next()
    await pay(steps, tool, effect())
    assert turns.status() == "done"
    await pay(steps, ScriptedTool(DONE), effect("undo", compensates="f1"), "tool:undo:1")
    assert turns.status() == "compensated"

    await pay(await turns.next(), tool, effect())

    assert len(tool.keys) == 3


@pytest.mark.parametrize("answer", [{"status": "unknown"}, Unavailable("gone")])
async def test_an_outcome_that_a_turn_left_unknown_is_unknown_to_the_next(answer: Any) -> None:
    """A turn that was canceled or quarantined during a call leaves the call started."""
    turns, tool = Turns(), ScriptedTool(answer, DONE)
    steps = await turns.begin()
    if isinstance(answer, Exception):
        with pytest.raises(Unavailable):
            await pay(steps, tool, effect())
    else:
        await pay(steps, tool, effect())

    outcome = await pay(await turns.next(), tool, effect())

    assert outcome == UnknownOutcome("tool:pay:1", tool.keys[0])
    assert len(tool.keys) == 1


async def test_a_decision_to_try_again_uses_the_key_of_the_first_try() -> None:
    """RT-9: a tool that stores keys recognizes the second try."""
    turns, tool = Turns(), ScriptedTool({"status": "unknown"}, DONE)
    await pay(await turns.begin(), tool, effect())

    assert await pay(await turns.next(), tool, effect(again=True)) == DONE

    assert tool.keys[0] == tool.keys[1]
    assert turns.status() == "done"


async def test_a_flow_that_the_turn_itself_started_keeps_its_line_after_a_crash() -> None:
    """The flow has a new ID in the second attempt, but the ledger has one effect."""
    turns, tool = Turns(), ScriptedTool(DONE)
    await pay(await turns.begin(), tool, effect("f1", "flow_1"))

    assert await pay(await turns.crash(), tool, effect("f2", "flow_2")) == DONE

    assert list(turns.store.effects) == [(SESSION, "f2")]
    assert turns.store.effects[SESSION, "f2"].flow_id == "flow_2"
    await pay(await turns.next(), tool, effect("f2", "flow_2"))
    assert len(tool.keys) == 1


async def test_every_attempt_asks_about_the_key_that_was_used() -> None:
    """Every try of a failed call uses the first try's key, even after several crashes."""
    turns, tool = Turns(), ScriptedTool(Unavailable("gone"))
    steps = await turns.begin()
    for number in range(1, 5):
        for earlier in range(1, number):
            again = effect(f"f{number}", f"flow_{number}", again=earlier > 1)
            outcome = await pay(steps, tool, again, f"tool:pay:{earlier}")
            assert outcome == UnknownOutcome(f"tool:pay:{earlier}", tool.keys[0])
        again = effect(f"f{number}", f"flow_{number}", again=number > 1)
        with pytest.raises(Unavailable):
            await pay(steps, tool, again, f"tool:pay:{number}")
        steps = await turns.crash()

    assert len(tool.keys) == 4
    assert len(set(tool.keys)) == 1
    assert len(turns.store.effects) == 1


async def test_an_undoing_that_crashed_is_taken_note_of() -> None:
    turns, tool = Turns(), ScriptedTool(DONE)
    await pay(await turns.begin(), tool, effect())
    steps = await turns.next()
    undo = effect("undo", compensates="f1")
    await pay(steps, tool, undo, "tool:undo:1")
    # Simulate a crash at this point.
    turns.store.effects[SESSION, "f1"] = replace(turns.store.effects[SESSION, "f1"], status=LedgerStatus.DONE)

    await pay(await turns.crash(), tool, undo, "tool:undo:1")

    assert turns.status() == "compensated"
    assert len(tool.keys) == 2


async def test_calls_that_change_nothing_are_not_in_the_ledger() -> None:
    turns, tool = Turns(), ScriptedTool(DONE)
    await (await turns.begin()).call("tool:look:1", "tool", {}, tool, idempotent=True)
    assert turns.store.effects == {}


@for_each(
    ("one", "other"),
    [
        ({"bags": 2}, {"bags": 2.0}),
        ({"name": "Ann  Lee "}, {"name": "Ann Lee"}),
        ({"name": "Zoe\u0301"}, {"name": "Zo\u00e9"}),
        ({"a": 1, "b": [1.0, {"c": " x"}]}, {"b": [1, {"c": "x"}], "a": 1}),
        ({"a": 1, "note": None}, {"a": 1}),
        ({"a": 1, "cabin": "economy"}, {"a": 1}),
    ],
)
def test_arguments_that_mean_the_same_are_the_same_effect(one: Any, other: Any) -> None:
    assert mark(one) == mark(other)


@for_each(
    ("one", "other"),
    [({"bags": 2}, {"bags": 3}), ({"ref": "AB"}, {"ref": "ab"}), ({"a": True}, {"a": 1}), ({}, {"a": 0})],
)
def test_arguments_that_mean_something_else_are_another_effect(one: Any, other: Any) -> None:
    assert mark(one) != mark(other)


def mark(arguments: Any) -> str:
    return fingerprint_effect(ToolId("pay"), arguments, "flow_1", defaults={"cabin": "economy"})
