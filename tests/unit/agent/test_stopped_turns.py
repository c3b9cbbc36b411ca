"""Turns that are stopped at any moment: no effect happens twice, and completed effects are reported (RT-25)."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.domain.services import ServiceContext
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import IfBusy, TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.memory import MemoryRecords
from tests.trained import simulate, trained
from tests.unit.running import Turns, runner_of

FIRST = SessionId("stopped")
ASK = "send a parcel to Bob"
TOOL_S = 0.02
"""Duration of each of the task's two tools."""
MOMENTS = [each / 1000 for each in range(0, 60, 3)]
"""Seconds until the turn is stopped: before, during, between and after the tools."""
MANY_MOMENTS = [each / 10_000 for each in range(0, 600, 7)]
"""More than 400 stops, with five ways to stop a turn."""


@dataclass
class Setting(Turns):
    """A mailroom with slow tools, and its current session."""

    outside: Any
    lanes: list[MemoryLane] = field(default_factory=list)

    def begin(self) -> None:
        """Clear the recorded calls and start a new session."""
        self.session = SessionId(f"stopped {len(self.simulator.store.sessions)}")
        self.outside.calls.clear()

    def runner(self, **limits: Any) -> LaneRunner:
        lane = MemoryLane(self.simulator.store, **limits)
        self.lanes.append(lane)
        return runner_of(self.simulator, lane)

    async def say(self, text: str) -> TurnRecord:
        turn_id = await self.submit(text)
        await self.runner().run(self.session)
        return await self.read(turn_id)

    @property
    def done(self) -> Counter[str]:
        return Counter(kind for kind, _ in self.outside.calls)


def prepare() -> Setting:
    mailroom: Any = trained("mailroom")[0].services["Mailroom"](ServiceContext(MemoryRecords()))

    async def print_label(*, recipient: str) -> Any:
        mailroom.calls.append(("label", recipient))
        await asyncio.sleep(TOOL_S)
        return {"label": recipient}

    async def send_parcel(*, recipient: str) -> Any:
        mailroom.calls.append(("parcel", recipient))
        await asyncio.sleep(TOOL_S)
        return {"parcel_id": recipient}

    mailroom.print_label, mailroom.send_parcel = print_label, send_parcel
    simulator = simulate("mailroom", services={"Mailroom": mailroom})
    return Setting(simulator, FIRST, mailroom, if_busy=IfBusy.ENQUEUE)


async def by_deadline(setting: Setting, after_s: float) -> TurnId:
    turn_id = await setting.submit(ASK)
    await setting.runner(turn_deadline_s=max(after_s, 0.0001)).run(setting.session)
    return turn_id


async def by_cancel(setting: Setting, after_s: float, *, interrupting: bool = False) -> TurnId:
    turn_id = await setting.submit(ASK)
    runner = setting.runner()
    running = asyncio.create_task(runner.run(setting.session))
    await asyncio.sleep(after_s)
    if interrupting:
        await setting.submit("read the web page", IfBusy.INTERRUPT)
    else:
        await MemoryInbox(setting.simulator.store).cancel(DEFAULT_TENANT, turn_id)
    await runner.renew()
    await running
    await setting.runner().run(setting.session)
    return turn_id


async def by_interrupt(setting: Setting, after_s: float) -> TurnId:
    return await by_cancel(setting, after_s, interrupting=True)


async def by_shutdown(setting: Setting, after_s: float) -> TurnId:
    turn_id = await setting.submit(ASK)
    running = asyncio.create_task(setting.runner().run(setting.session))
    await asyncio.sleep(after_s)
    running.cancel()
    await asyncio.wait({running})
    await setting.runner().run(setting.session)
    return turn_id


async def by_crash(setting: Setting, after_s: float) -> TurnId:
    """Stop a turn by killing its worker, whose later writes reach no store."""
    turn_id = await setting.submit(ASK)
    running = asyncio.create_task(setting.runner().run(setting.session))
    await asyncio.sleep(after_s)
    setting.lanes[-1].die()
    survivor = setting.runner()
    await setting.lanes[-1].sweep(grace_s=0)
    await survivor.run(setting.session)
    running.cancel()
    await asyncio.wait({running})
    return turn_id


@pytest.mark.parametrize(
    "moments", [MOMENTS, pytest.param(MANY_MOMENTS, marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.parametrize("stop", [by_deadline, by_cancel, by_interrupt, by_shutdown, by_crash])
async def test_a_stopped_turn_does_nothing_twice_and_tells_what_it_did(
    stop: Any, moments: list[float]
) -> None:
    setting, stopped_after_effects = prepare(), 0
    for after_s in moments:
        setting.begin()
        turn = await setting.read(await stop(setting, after_s))
        done, reply = setting.done, turn.result["reply"] if turn.result else ""
        assert max(done.values(), default=0) <= 1, after_s
        if turn.status is not TurnStatus.DONE and done:
            assert "send it again" not in reply.lower(), after_s
            assert "parcel" in reply.lower() or "label" in reply.lower(), after_s
            stopped_after_effects += 1

        again = await setting.say(ASK)

        answer = again.result["reply"] if again.result else ""
        if "Shall I do it again anyway?" in answer:
            assert "Print a label" in answer, (after_s, reply, answer)
        assert max(setting.done.values()) <= (1 if done and turn.status is not TurnStatus.DONE else 2), (
            after_s,
            reply,
            again.result,
        )
    assert stopped_after_effects or stop in {by_shutdown, by_crash}


class LastToKnow(MemoryLane):
    """A lane whose worker is stopped after the end of its first effect is recorded, but before it learns that."""

    def __init__(self, *arguments: Any, **limits: Any) -> None:
        super().__init__(*arguments, **limits)
        self.recorded = asyncio.Event()

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
        written = await super().record(lease, turn_id, step, entry, heard)
        if step.status is StepStatus.FINISHED and entry is not None and not self.recorded.is_set():
            self.recorded.set()
            await asyncio.Event().wait()
        return written


async def test_what_the_ledger_knows_is_not_in_doubt_when_a_turn_is_stopped() -> None:
    setting = prepare()
    turn_id = await setting.submit(ASK)
    lane = LastToKnow(setting.simulator.store)
    runner = runner_of(setting.simulator, lane)
    running = asyncio.create_task(runner.run(setting.session))
    await lane.recorded.wait()
    await MemoryInbox(setting.simulator.store).cancel(DEFAULT_TENANT, turn_id)
    await runner.renew()
    await running

    stopped, again = await setting.read(turn_id), await setting.say(ASK)

    assert stopped.result is not None
    assert "Print a label" in stopped.result["reply"]
    assert "can't tell" not in stopped.result["reply"]
    assert again.result is not None
    assert "send_parcel" in again.result["completed"]
    assert setting.done == {"label": 1, "parcel": 1}


async def test_a_turn_that_is_set_aside_after_an_effect_tells_what_it_did() -> None:
    """RT-6, RT-25: its last attempt crashed during the first tool."""
    setting = prepare()
    turn_id = await setting.submit(ASK)
    running = asyncio.create_task(setting.runner().run(setting.session))
    await asyncio.sleep(TOOL_S / 2)
    running.cancel()
    await asyncio.wait({running})
    row = setting.simulator.store.turn(DEFAULT_TENANT, turn_id)[1]
    row.attempts, row.error = 3, "its worker ended"

    await setting.runner().run(setting.session)

    turn = await setting.read(turn_id)
    assert turn.status is TurnStatus.QUARANTINED
    assert turn.result is not None
    assert "can't tell whether it worked" in turn.result["reply"]
    assert turn.error == "gave_up: its worker ended"
    assert setting.done == {"label": 1}
