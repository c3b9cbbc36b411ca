"""What is said by `understand` while a turn is at work, at exact moments over the stores in memory (RT-5, RT-25).

The table is that of `docs/interruptions.md`; `tests/interjected.py` judges by it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.domain.services import ServiceContext
from orchestrator.nlu.readers.system1 import System1
from orchestrator.runtime.lane import LaneRunner
from orchestrator.simulator import Simulator
from orchestrator.testing.inbox import MemoryInbox
from orchestrator.testing.lane import MemoryLane
from orchestrator.testing.live import MemoryWakeup
from orchestrator.testing.memory import MemoryRecords
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import Step
from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId
from tests.contract.in_memory.sessions import MemorySessions
from tests.interjected import ASK, EFFECTS, SAID, Outcome, find_faults

MOMENTS = ("queued", "letters", "label", "between", "parcel", "ended")
"""Before the turn is taken up; while a call that changes nothing is at work; while the first effect is; when that is
over and the next not begun; while the next is; when all is over."""


@cache
def trained(folder: str) -> tuple[LoadedDomain, System1]:
    loaded = load_domain(folder)
    return loaded, System1.for_domain(loaded.domain)


@pytest.fixture(scope="module")
def mailroom(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The mailroom whose parcels begin with a call that changes nothing."""
    return str(write_mailroom(tmp_path_factory.mktemp("mailroom")))


def write_mailroom(folder: Path) -> Path:
    source = Path("tests/domains/mailroom")
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            place = folder / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    ontology = yaml.safe_load((folder / "ontology.yaml").read_text())
    ontology["flows"]["send_parcel"]["tools"].insert(0, {"tool_id": "letter_count"})
    (folder / "ontology.yaml").write_text(yaml.safe_dump(ontology, sort_keys=False))
    return folder


class NotingLane(MemoryLane):
    """Notes when a step was first written."""

    first: dict[tuple[TurnId, str], datetime]

    def __init__(self, *arguments: Any, **limits: Any) -> None:
        super().__init__(*arguments, **limits)
        self.first = {}

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
        written = await super().record(lease, turn_id, step, entry, heard)
        if written:
            self.first.setdefault((turn_id, step.key), datetime.now(UTC))
        return written


class LateLane(NotingLane):
    """Lets an effect begin and looks afterwards: the fault that the judge has to find."""

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
        return await super().record(lease, turn_id, step, entry)


@dataclass
class Setting:
    """A mailroom whose tools wait to be let go on."""

    simulator: Simulator
    lane: NotingLane
    session: SessionId = field(default=SessionId("interjected"))
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    reached: dict[str, asyncio.Event] = field(default_factory=dict)
    let_go: dict[str, asyncio.Event] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: str, lane: type[NotingLane] = NotingLane) -> Setting:
        loaded, system1 = trained(folder)
        service: Any = loaded.services["Mailroom"](ServiceContext(MemoryRecords()))
        simulator = Simulator.of(loaded, system1=system1, services={"Mailroom": service})
        simulator.store.clock = lambda: datetime.now(UTC)
        setting = cls(simulator, lane(simulator.store))
        for name in ("letters", *EFFECTS):
            setting.reached[name], setting.let_go[name] = asyncio.Event(), asyncio.Event()

        async def count_letters() -> Any:
            await setting.work("letters")
            return {"waiting": 2}

        async def print_label(*, recipient: str) -> Any:
            await setting.work("label", recipient)
            return {"label": recipient}

        async def send_parcel(*, recipient: str) -> Any:
            await setting.work("parcel", recipient)
            return {"parcel_id": recipient}

        service.count_letters, service.print_label, service.send_parcel = (
            count_letters,
            print_label,
            send_parcel,
        )
        return setting

    async def work(self, name: str, recipient: str = "") -> None:
        if recipient:
            self.calls[name, recipient] += 1
        self.reached[name].set()
        await self.let_go[name].wait()

    @property
    def inbox(self) -> MemoryInbox:
        return MemoryInbox(self.simulator.store)

    async def submit(self, text: str) -> TurnId:
        given = Submission(
            self.session,
            TurnInput(text),
            DEFAULT_TENANT,
            if_busy=IfBusy.UNDERSTAND,
            create_session=True,
            domain="mailroom",
        )
        return (await self.inbox.submit(given)).turn_id

    async def read(self, turn_id: TurnId) -> TurnRecord:
        return await self.inbox.turn(DEFAULT_TENANT, turn_id)

    async def agent(self, _domain: str) -> Any:
        return self.simulator.agent

    def runner(self, lane: MemoryLane | None = None) -> LaneRunner:
        return LaneRunner(lane or self.lane, self.simulator.live, MemoryWakeup(), self.agent)

    def go_on(self) -> None:
        for event in self.let_go.values():
            event.set()

    def outcome(self, kind: str, first: TurnRecord, second: TurnRecord) -> Outcome:
        keys = {name: f"tool:parcel_{'send' if name == 'parcel' else name}:1" for name in EFFECTS}
        begun = {
            name: self.lane.first[first.turn_id, key]
            for name, key in keys.items()
            if (first.turn_id, key) in self.lane.first
        }
        return Outcome(kind, first, second, begun, self.calls)


@dataclass
class Booking:
    """A conversation in which a flight was offered."""

    simulator: Simulator
    session: SessionId

    @classmethod
    async def begin(cls) -> Booking:
        simulator = Simulator.of("travel")
        talk = simulator.converse()
        await talk.say("Book a flight from Oslo to Madrid tomorrow")
        return cls(simulator, talk.session_id)

    @property
    def inbox(self) -> MemoryInbox:
        return MemoryInbox(self.simulator.store)

    async def submit(self, text: str) -> TurnId:
        given = Submission(self.session, TurnInput(text), DEFAULT_TENANT, if_busy=IfBusy.UNDERSTAND)
        return (await self.inbox.submit(given)).turn_id

    def runner(self) -> LaneRunner:
        async def agent(_domain: str) -> Any:
            return self.simulator.agent

        return LaneRunner(MemoryLane(self.simulator.store), self.simulator.live, MemoryWakeup(), agent)

    async def read(self, turn_id: TurnId) -> TurnRecord:
        return await self.inbox.turn(DEFAULT_TENANT, turn_id)

    async def reply(self, turn_id: TurnId) -> str:
        result = (await self.read(turn_id)).result
        return result["reply"] if result else ""


async def interject(setting: Setting, text: str, moment: str, *, polls: bool = True) -> list[TurnId]:
    """Say something at a moment, let the lane look where it does so by itself, and let everything come to its end."""
    first = await setting.submit(ASK)
    if moment == "queued":
        second = await setting.submit(text)
    runner = setting.runner()
    running = asyncio.create_task(runner.run(setting.session))
    if moment != "queued":
        before = {"between": ("letters",), "label": ("letters",), "parcel": ("letters", "label")}
        for name in before.get(moment, ()):
            setting.let_go[name].set()
        if moment == "ended":
            setting.go_on()
            await running
        else:
            await setting.reached["label" if moment == "between" else moment].wait()
        second = await setting.submit(text)
        if moment == "between":
            setting.let_go["label"].set()
            polls = False
        if polls:
            await runner.renew()
    setting.go_on()
    await running
    await runner.run(setting.session)
    return [first, second]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", SAID)
async def test_each_kind_at_each_moment_comes_to_what_the_table_says(
    kind: str, moment: str, mailroom: str
) -> None:
    for text in SAID[kind]:
        setting = Setting.of(mailroom)
        turns = [await setting.read(each) for each in await interject(setting, text, moment)]

        assert find_faults(setting.outcome(kind, turns[0], turns[1])) == [], (text, turns)


@pytest.mark.parametrize("kind", ["correction", "cancellation"])
async def test_the_judge_finds_a_lane_that_looks_after_an_effect_instead_of_before(
    kind: str, mailroom: str
) -> None:
    setting = Setting.of(mailroom, LateLane)
    turns = [
        await setting.read(each) for each in await interject(setting, SAID[kind][0], "letters", polls=False)
    ]

    assert find_faults(setting.outcome(kind, turns[0], turns[1])) != []


async def test_a_question_is_answered_while_the_turn_goes_on(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    runner = setting.runner()
    running = asyncio.create_task(runner.run(setting.session))
    await setting.reached["letters"].wait()
    second = await setting.submit("what can you do?")
    await runner.renew()

    answered, at_work = await setting.read(second), await setting.read(first)
    assert (answered.status, at_work.status) == (TurnStatus.DONE, TurnStatus.RUNNING)
    history = await MemorySessions(setting.simulator.store).history(DEFAULT_TENANT, setting.session)
    assert next(line["content"] for line in history) == "what can you do?"
    setting.go_on()
    await running
    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}


@pytest.mark.parametrize("moment", ["letters", "label", "parcel"])
@pytest.mark.parametrize("kind", ["correction", "cancellation", "question", "thanks"])
async def test_whoever_takes_over_does_the_same(kind: str, moment: str, mailroom: str) -> None:
    """The worker dies after the message was accepted and before it was heard; its call has come to nothing."""
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    running = asyncio.create_task(setting.runner().run(setting.session))
    for name in ("letters", "label", "parcel"):
        await setting.reached[name].wait()
        if name == moment:
            break
        setting.let_go[name].set()
    second = await setting.submit(SAID[kind][0])
    setting.lane.die()
    running.cancel()
    await asyncio.wait({running})
    setting.calls.clear()
    heir = NotingLane(setting.simulator.store)
    heir.first = setting.lane.first
    setting.lane = heir
    setting.go_on()
    await heir.sweep(grace_s=0)
    await setting.runner().run(setting.session)

    turns = await setting.read(first), await setting.read(second)
    assert max(setting.calls.values(), default=0) <= 1
    if moment == "letters":
        assert find_faults(setting.outcome(kind, *turns)) == []
    elif kind in {"correction", "cancellation"}:
        assert setting.calls == {}, "what was begun is in doubt, and nothing else begins"


async def test_what_follows_another_task_is_about_that_one(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    await setting.submit("thanks")
    await setting.submit("send a mail to Eve")
    await setting.submit("no, to Ann")
    setting.go_on()
    await setting.runner().run(setting.session)

    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}


async def test_talk_does_not_hide_what_is_said_after_it(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    await setting.submit("thanks")
    await setting.submit("what can you do?")
    await setting.submit("no, to Ann")
    setting.go_on()
    await setting.runner().run(setting.session)

    assert (await setting.read(first)).status is TurnStatus.CANCELLED
    assert setting.calls == {("label", "ann"): 1, ("parcel", "ann"): 1}


async def test_turns_that_name_another_rule_are_not_heard(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    await setting.inbox.submit(Submission(setting.session, TurnInput("no, to Ann"), DEFAULT_TENANT))
    setting.go_on()
    await setting.runner().run(setting.session)

    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}


@pytest.mark.parametrize(
    ("text", "booked", "status"),
    [
        ("no", False, TurnStatus.CANCELLED),
        ("no, to Rome", False, TurnStatus.CANCELLED),
        ("thanks", True, TurnStatus.DONE),
    ],
)
async def test_a_yes_can_be_taken_back_before_it_has_done_anything(
    text: str, booked: bool, status: TurnStatus
) -> None:
    booking = await Booking.begin()
    first, second = await booking.submit("yes"), await booking.submit(text)
    await booking.runner().run(booking.session)

    said = await booking.reply(second)
    assert (await booking.read(first)).status is status
    assert bool(booking.simulator.store.effects) is booked
    if text == "no, to Rome":
        assert "from Madrid (MAD) to Rome (FCO)" in said
        assert "Shall I book it?" in said


async def test_a_yes_does_not_count_for_what_was_not_displayed() -> None:
    """AM-3: what was said meanwhile is cancelled before its turn comes, so that nobody has offered anything."""
    booking = await Booking.begin()
    await booking.submit("yes")
    second = await booking.submit("no, to Rome")
    runner = booking.runner()
    runner.drain()
    await runner.run(booking.session)
    await booking.inbox.cancel(DEFAULT_TENANT, second)
    yes = await booking.submit("yes")
    await booking.runner().run(booking.session)

    assert booking.simulator.store.effects == {}
    assert "Shall I book it?" in await booking.reply(yes)
