"""The recovery rung with a wait for findings of Internal flows, in whole conversations (PX-16)."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.agent.steps.record import NOTES
from orchestrator.ports.memory.context import CONTEXT_READY, HAND_OVER_CONTEXT, Finding, Findings
from orchestrator.telemetry import SignalType
from orchestrator.turns.turn import TurnInput, TurnKind
from orchestrator.types import JsonObject
from parley.simulator import Conversation
from tests.trained import simulate
from tests.transcripts.memory_gathering import MemoryContextGathering
from tests.transcripts.skills.skilled import answer, call, finish, talk

SHELF = Findings((Finding("tasks", "store part: shelf: S07", {"shelf": "S07"}, 1.0),))
NOTHING = Findings()


class Talk:
    def __init__(self, *ready: Findings, **resilience: Any) -> None:
        self.gathering = MemoryContextGathering(*ready)
        self.simulator = simulate("depot", sections={"resilience": resilience}, gather=self.gathering)
        self.conversation: Conversation = self.simulator.converse()

    async def say(self, text: str) -> JsonObject:
        return await self.conversation.say(text)

    async def hand_over(self, findings: Findings, asked: int = 0) -> JsonObject:
        """End the search: run the turn that informs the lane."""
        run_id, question = list(self.gathering.asked.items())[asked]
        self.gathering.find(run_id, findings)
        return await self.tell(question.flow_id, run_id)

    async def tell(self, flow_id: str, run_id: str) -> JsonObject:
        action = {"name": CONTEXT_READY, "payload": {"flow_id": flow_id, "run_id": run_id}}
        return await self.conversation.submit(TurnInput(action=action, form="action", kind=TurnKind.SYSTEM))

    @property
    def rungs(self) -> list[str]:
        signals = self.simulator.signals
        return [s.payload["rung"] for s in signals if s.type is SignalType.RECOVERY and s.source == "agent"]

    @property
    def outbox(self) -> list[JsonObject]:
        """Return the outbox messages, except for the session's notes."""
        return [sent.payload for sent in self.simulator.store.outbox if sent.kind != NOTES]


def stack_of(turn: JsonObject) -> list[tuple[str, str | None]]:
    return [(flow["dact"], flow["reason"]) for flow in turn["flows"]]


async def test_what_is_found_in_time_lets_the_turn_itself_go_on() -> None:
    t = Talk(SHELF)
    turn = await t.say("fetch part P0001")

    assert turn["completed"] == ["fetch_part"]
    assert turn["tools"][0]["arguments"] == {"part": "P0001", "shelf": "S07"}
    assert t.rungs == ["retry", "gather", "gathered"]
    [question] = t.gathering.asked.values()
    assert (question.slots, question.known) == ({"shelf": "the shelf"}, {"part": "P0001"})
    assert question.question.startswith("Which shelf is it on?")
    assert t.outbox == []


async def test_a_flow_that_waits_longer_ends_the_turn_and_goes_on_by_itself() -> None:
    t = Talk()
    turn = await t.say("fetch part P0001")

    assert stack_of(turn) == [("fetch_part", "awaiting_context")]
    assert "come back" in turn["reply"]
    [sent] = t.outbox
    [run_id] = t.gathering.asked
    assert (sent["flow"], sent["after"], sent["slot"]) == (HAND_OVER_CONTEXT, run_id, run_id)

    told = await t.hand_over(SHELF)

    assert told["completed"] == ["fetch_part"]
    assert told["tools"][0]["arguments"] == {"part": "P0001", "shelf": "S07"}
    assert stack_of(told) == []


async def test_a_parked_flow_for_which_nothing_is_found_goes_up_the_ladder_by_itself() -> None:
    t = Talk(max_recovery_attempts=0)
    await t.say("fetch part P0001")
    told = await t.hand_over(NOTHING)

    assert told["reply"] == "Which shelf is it on?"
    assert stack_of(told) == [("fetch_part", None)]
    assert t.rungs[-1] == "escalate"


async def test_meanwhile_the_user_may_do_other_things_and_is_not_disturbed() -> None:
    t = Talk(context_wait_s=600)
    await t.say("fetch part P0001")
    listed = await t.say("list the shelves")
    assert listed["completed"] == ["list_shelves"]
    assert stack_of(listed) == [("fetch_part", "awaiting_context")]

    started = await t.say("put part P0002 on a shelf")
    assert stack_of(started) == [("fetch_part", "awaiting_context"), ("store_part", None)]
    silent = await t.hand_over(SHELF)
    assert silent.get("reply") in {None, ""}
    done = await t.say("S03")

    assert done["completed"] == ["store_part", "fetch_part"]
    assert done["tools"][-1]["arguments"] == {"part": "P0001", "shelf": "S07"}


async def test_findings_that_are_there_when_the_user_speaks_are_taken_up_before() -> None:
    t = Talk()
    await t.say("fetch part P0001")
    [(run_id, question)] = t.gathering.asked.items()
    t.gathering.find(run_id, SHELF)
    turn = await t.say("thanks")

    assert turn["completed"] == ["fetch_part"]
    late = await t.tell(question.flow_id, run_id)
    assert late.get("reply") in {None, ""}
    assert (await t.say("list the shelves"))["completed"] == ["list_shelves"]


async def test_a_wait_ends_at_its_deadline_whatever_became_of_the_looking() -> None:
    t = Talk(context_wait_s=30, max_recovery_attempts=0)
    await t.say("fetch part P0001")
    t.simulator.now += 60
    turn = await t.say("hello")

    assert stack_of(turn) == [("fetch_part", None)]
    assert "Which shelf is it on?" in turn["reply"]
    assert len(t.gathering.asked) == 1


async def test_the_user_may_give_what_is_being_looked_for() -> None:
    t = Talk(context_wait_s=600)
    await t.say("fetch part P0001")
    turn = await t.say("fetch part P0001 from shelf S09")

    assert turn["completed"] == ["fetch_part"]
    assert turn["tools"][0]["arguments"]["shelf"] == "S09"


async def test_the_same_is_not_looked_for_twice() -> None:
    t = Talk(NOTHING, max_recovery_attempts=0)
    await t.say("fetch part P0001")
    await t.say("I do not know")

    assert len(t.gathering.asked) == 1


@pytest.mark.parametrize("waits", [0, 0.5])
async def test_a_domain_that_waits_only_within_the_turn_never_parks(waits: float) -> None:
    t = Talk(context_wait_s=1, context_in_turn_s=1 + waits, max_recovery_attempts=0)
    turn = await t.say("fetch part P0001")

    assert stack_of(turn) == [("fetch_part", None)]
    assert t.outbox == []


async def test_a_value_that_does_not_fit_its_slot_is_not_taken() -> None:
    t = Talk(Findings((Finding("rows", "shelf: none", {"shelf": "none"}),)), max_recovery_attempts=0)
    turn = await t.say("fetch part P0001")

    assert turn["flows"][0]["slots"] == {"part": "P0001"}
    assert turn["reply"] == "Which shelf is it on?"


async def test_a_skill_reads_what_was_found() -> None:
    """The skill's data contain the findings, whose sources label the session."""
    gathering = MemoryContextGathering(
        Findings((Finding("rows", "fiscal year: 2025", {}, 1.0, ("private",)),))
    )
    unsure = finish("uncertain", message="Which year?")
    read = call("memory_manager", operation="read")
    async with talk(unsure, unsure, read, answer(answer="2025"), gather=gathering) as t:
        turn = await t.say("ask the data")

        assert turn["reply"] == "Answer: 2025"
        assert "fiscal year: 2025" in str(t.asked[2].data["notes"])
        assert "fiscal year: 2025" in t.told()
