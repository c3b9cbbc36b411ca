"""A mailroom over the in-memory stores, whose tools wait for a signal, and messages at exact moments."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.services import ServiceContext
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import Step
from orchestrator.turns.turn import TurnInput, TurnRecord
from orchestrator.types import JsonObject, SessionId, TurnId
from parley.simulator import Simulator
from parley.testing.lane import MemoryLane
from parley.testing.memory import MemoryRecords
from tests.trained import simulate, trained
from tests.unit.interruptions.judge import ASK, EFFECTS, Outcome
from tests.unit.running import Turns, runner_of

MOMENTS = ("queued", "letters", "label", "between", "parcel", "ended")
"""Before the turn starts; during a call without side effects; during the first effect; between both effects; during the
second effect; after the turn.
"""

TOOL_TIMEOUT_MS = 60_000


def write_mailroom(folder: Path, *, timeout_ms: int = TOOL_TIMEOUT_MS) -> Path:
    source = Path("tests/domains/mailroom")
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            place = folder / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    ontology = yaml.safe_load((folder / "ontology.yaml").read_text())
    ontology["flows"]["send_parcel"]["tools"].insert(0, {"tool_id": "letter_count"})
    (folder / "ontology.yaml").write_text(yaml.safe_dump(ontology, sort_keys=False))
    # After a timeout, the call may have happened, and another table would apply. The timeout is long, because calls are
    # slow on a busy machine.
    with (folder / "domain.yaml").open("a") as config:
        config.write(f"resilience: {{tool_timeout_ms: {timeout_ms}}}\n")
    return folder


class NotingLane(MemoryLane):
    """A lane that records when a step was first written."""

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
    """A lane that starts an effect before it checks for messages: a fault that the judge must find."""

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
class Setting(Turns):
    """A mailroom whose tools wait for a signal."""

    lane: NotingLane
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    reached: dict[str, asyncio.Event] = field(default_factory=dict)
    let_go: dict[str, asyncio.Event] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: str, lane: type[NotingLane] = NotingLane, models: ModelPool | None = None) -> Setting:
        loaded, system1 = trained(folder)
        service: Any = loaded.services["Mailroom"](ServiceContext(MemoryRecords()))
        simulator = Simulator.of(loaded, system1=system1, services={"Mailroom": service}, models=models)
        simulator.store.clock = lambda: datetime.now(UTC)
        setting = cls(simulator, SessionId("interjected"), lane(simulator.store))
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

    def runner(self) -> LaneRunner:
        return runner_of(self.simulator, self.lane)

    async def run_until(self, place: str) -> tuple[TurnId, LaneRunner, asyncio.Task[None]]:
        """Submit the task, and run it until this call."""
        turn_id, runner = await self.submit(ASK), self.runner()
        running = asyncio.create_task(runner.run(self.session))
        for name in ("letters", *EFFECTS):
            await self.reached[name].wait()
            if name == place:
                break
            self.let_go[name].set()
        return turn_id, runner, running

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
class Booking(Turns):
    """A conversation with an offered flight. `actions`: the suggested replies of the last answer."""

    actions: list[JsonObject]

    @classmethod
    async def begin(cls) -> Booking:
        simulator = simulate("travel")
        talk = simulator.converse()
        turn = await talk.say("Book a flight from Oslo to Madrid tomorrow")
        return cls(simulator, talk.session_id, turn["actions"])

    async def click(self, name: str) -> TurnId:
        action = next(action for action in self.actions if action["name"] == name)
        clicked = {"name": name, "payload": action["payload"]}
        return await self.submit(TurnInput(action=clicked, form="action"))

    def runner(self) -> LaneRunner:
        return runner_of(self.simulator)

    async def reply(self, turn_id: TurnId) -> str:
        result = (await self.read(turn_id)).result
        return result["reply"] if result else ""


async def interject(setting: Setting, text: str, moment: str, *, polls: bool = True) -> list[TurnId]:
    """Send a message at a moment, poll the lane if it would poll by then, and run everything to its end."""
    said = [await setting.submit(ASK)]
    if moment == "queued":
        said.append(await setting.submit(text))
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
        said.append(await setting.submit(text))
        if moment == "between":
            setting.let_go["label"].set()
            polls = False
        if polls:
            await runner.renew()
    setting.go_on()
    await running
    await runner.run(setting.session)
    return said
