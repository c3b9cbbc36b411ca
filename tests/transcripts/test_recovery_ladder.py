"""PX-16, AG-6: a conversation through the whole agent for each recovery rung, in order.

`test_skills_recovery.py`, `test_context_wait.py` and `tests/unit/pex/` test the details of each rung.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.dialogue.records import Frame
from orchestrator.pex.execution import Ending, Execution, Recovery
from orchestrator.pex.policy import BasePolicy
from orchestrator.ports.memory.context import Finding, Findings
from orchestrator.telemetry import SignalType
from orchestrator.types import Dact, JsonObject
from parley.simulator import Simulator
from parley.testing.scripted_model import Answer, Rule
from tests.cases import for_each
from tests.trained import simulate, trained
from tests.transcripts.memory_gathering import MemoryContextGathering
from tests.transcripts.skills.skilled import answer, finish, talk
from tests.unit.pex.test_five_verifications import CannotBeShown

SHELF = Findings((Finding("tasks", "store part: shelf: S07", {"shelf": "S07"}, 1.0),))
UNSURE = finish("uncertain", message="Which year?")


def steps_of(simulator: Simulator) -> list[str]:
    """Return the rungs taken, in order."""
    return [s.payload["rung"] for s in simulator.signals if s.type is SignalType.RECOVERY]


class Conversed:
    def __init__(self, simulator: Simulator, turn: JsonObject) -> None:
        self.turn = turn
        self.steps = steps_of(simulator)
        self.repairs = [s.payload.get("how") for s in simulator.signals if s.payload.get("rung") == "repair"]


async def converse(simulator: Simulator, *texts: str) -> Conversed:
    conversation = simulator.converse()
    turn: JsonObject = {}
    for text in texts:
        turn = await conversation.say(text)
    return Conversed(simulator, turn)


# Tier 1: a frame that cannot be shown


class LostItsRows(BasePolicy):
    def frame(self, run: Execution) -> Frame:
        return Frame("frame_1", run.flow.flow_id, None, display_type="table")


class CannotBeDrawn(BasePolicy):
    def frame(self, run: Execution) -> Frame:
        return Frame("frame_1", run.flow.flow_id, {"mark": "pie"}, display_type="chart", error="no axis")


class ShowsNothingAtFirst(CannotBeShown):
    def frame(self, run: Execution) -> Frame:
        return BasePolicy.frame(self, run) if run.context.changes.climbed else super().frame(run)


class ForgetsItsFrame(BasePolicy):
    """A policy with a fault that `verify_results` finds once."""

    async def results(self, run: Execution) -> Ending | None:
        ending = await super().results(run)
        if not run.context.changes.climbed:
            run.frame = None
        return ending


def laboratory(policy: type[BasePolicy]) -> LoadedDomain:
    """Return the laboratory, with another policy for its only flow without a model."""
    loaded, _ = trained("lab")
    return replace(loaded, policies={**loaded.policies, Dact("list_parts"): policy})


async def list_parts(policy: type[BasePolicy]) -> Conversed:
    return await converse(Simulator.of(laboratory(policy), system1=trained("lab")[1]), "list the parts")


async def repaired_without_a_model() -> Conversed:
    return await list_parts(LostItsRows)


async def repaired_plainly() -> Conversed:
    return await list_parts(CannotBeDrawn)


async def repaired_by_a_model() -> Conversed:
    choice = Answer(json={"display_type": "list", "field": "parts"})
    rules = (Rule(prompt="pex_redraw", replies=(choice,)),)
    async with talk(rules=rules, loaded=laboratory(CannotBeDrawn)) as t:
        turn = await t.say("list the parts")
        return Conversed(t.simulator, turn)


@pytest.mark.parametrize(
    ("conversation", "how", "display"),
    [
        (repaired_without_a_model, "take_data", "table"),
        (repaired_by_a_model, "replace", "list"),
        (repaired_plainly, "plain", "table"),
    ],
    ids=["deterministic fix", "written by a model", "plain form"],
)
async def test_a_frame_is_repaired(
    conversation: Callable[[], Awaitable[Conversed]], how: str, display: str
) -> None:
    """AG-6, tier 1: repairs without a model first, then by a model, then the plain form."""
    talked = await conversation()

    assert (talked.steps, talked.repairs) == ([Recovery.REPAIR], [how])
    assert talked.turn["completed"] == ["list_parts"]
    frame = talked.turn["frame"]
    assert (frame["display_type"], [row["name"] for row in frame["data"]]) == (display, ["bolt", "lens"])


async def test_a_picture_on_which_nothing_can_be_seen_is_repaired_into_its_rows() -> None:
    """AG-6, in a shipped domain: its policy finds the problem, and the user is told once."""

    talked = await converse(simulate("analytics"), "bar chart of mpg by name in cars")

    assert (talked.steps, talked.repairs) == ([Recovery.REPAIR], ["plain"])
    frame = talked.turn["frame"]
    assert (frame["block"]["type"], frame["block"]["rows"], frame["error"]) == ("table", 311, None)
    assert talked.turn["reply"].count("This is shown as a table: 311 bars are too many to read.") == 1
    assert "Here's the" not in talked.turn["reply"]


# Tier 2: the ladder


async def retried() -> Conversed:
    async with talk(UNSURE, answer(answer="all years")) as t:
        turn = await t.say("ask the data")
        assert turn["reply"] == "Answer: all years"
        return Conversed(t.simulator, turn)


async def gathered_for() -> Conversed:
    simulator = simulate("depot", gather=MemoryContextGathering())
    talked = await converse(simulator, "fetch part P0001")
    [waiting] = talked.turn["flows"]
    assert waiting["reason"] == "awaiting_context"
    return talked


async def gathered() -> Conversed:
    simulator = simulate("depot", gather=MemoryContextGathering(SHELF))
    talked = await converse(simulator, "fetch part P0001")
    assert talked.turn["tools"][0]["arguments"] == {"part": "P0001", "shelf": "S07"}
    assert talked.turn["completed"] == ["fetch_part"]
    return talked


async def rerouted() -> Conversed:
    async with talk(finish("uncertain", message="I cannot query that.")) as t:
        turn = await t.say("ask the data")
        assert turn["completed"] == ["list_parts"]
        return Conversed(t.simulator, turn)


async def left_out_of_a_plan() -> Conversed:
    talked = await converse(simulate("desk"), "do the service round of printer two")
    assert "wipe_disk" in [flow["dact"] for flow in talked.turn["flows"]]
    assert "check_queue" not in [flow["dact"] for flow in talked.turn["flows"]]
    return talked


async def escalated() -> Conversed:
    async with talk(UNSURE, resilience={"max_recovery_attempts": 0}) as t:
        turn = await t.say("compute a number")
        assert turn["reply"] == "Which year?"
        [asking] = turn["flows"]
        assert (asking["dact"], asking["state"]) == ("compute_number", "Active")
        return Conversed(t.simulator, turn)


async def fell_back() -> Conversed:
    """The flow's type names the target; no rung of the ladder is tried, no model is called."""
    talked = await converse(simulate("travel"), "check my booking PX7K2M")
    assert "I can't find booking PX7K2M" in talked.turn["reply"]
    assert talked.turn["completed"] == ["list_bookings"]
    assert [tool["tool_id"] for tool in talked.turn["tools"]] == ["booking_get", "booking_list"]
    return talked


async def asked_again() -> Conversed:
    talked = await converse(simulate("desk"), "order toner for Hall North")
    assert talked.turn["ambiguity"]["slot"] == "printer"
    return talked


@pytest.mark.parametrize(
    ("policy", "rungs", "completed"),
    [
        (ShowsNothingAtFirst, [Recovery.RETRY], ["list_parts"]),
        (ForgetsItsFrame, [Recovery.RETRY], ["list_parts"]),
        (CannotBeShown, [Recovery.RETRY, Recovery.REROUTE, Recovery.ESCALATE], []),
    ],
)
async def test_a_result_that_cannot_be_used_starts_recovery(
    policy: type[BasePolicy], rungs: list[Recovery], completed: list[str]
) -> None:
    """AG-6, PX-16: unpresentable or wrong according to `verify`; nothing is reported as done meanwhile."""
    talked = await list_parts(policy)

    assert (talked.steps, talked.turn["completed"]) == (rungs, completed)
    if not completed:
        assert "I have a result, but I can't show it." in talked.turn["reply"]


LADDER: dict[Recovery, tuple[Callable[[], Awaitable[Conversed]], list[Recovery]]] = {
    Recovery.REPAIR: (repaired_without_a_model, [Recovery.REPAIR]),
    Recovery.RETRY: (retried, [Recovery.RETRY]),
    Recovery.GATHER: (gathered_for, [Recovery.RETRY, Recovery.GATHER]),
    Recovery.GATHERED: (gathered, [Recovery.RETRY, Recovery.GATHER, Recovery.GATHERED]),
    Recovery.REROUTE: (rerouted, [Recovery.RETRY, Recovery.REROUTE]),
    Recovery.SKIP: (left_out_of_a_plan, [Recovery.RETRY, Recovery.SKIP]),
    Recovery.ESCALATE: (escalated, [Recovery.RETRY, Recovery.ESCALATE]),
    Recovery.FALLBACK: (fell_back, [Recovery.FALLBACK]),
    Recovery.ASK_AGAIN: (asked_again, [Recovery.ASK_AGAIN]),
}
"""Rungs with their conversations, and everything tried before."""


def test_every_rung_has_its_conversation() -> None:
    assert set(LADDER) == set(Recovery)


@for_each("rung", LADDER, ids=str)
async def test_a_conversation_reaches(rung: Recovery) -> None:
    """PX-16, AG-6: this rung and no later one; the turn is answered."""
    conversation, climbed = LADDER[rung]

    talked = await conversation()

    assert talked.steps == climbed
    assert climbed[-1] is rung
    assert talked.turn["status"] == "done"
    assert talked.turn["reply"]
