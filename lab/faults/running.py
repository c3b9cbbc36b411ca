"""Run conversations with faults, and record what the user sees and which calls are executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import orjson

from lab.evaluation.conversations import beginning_of, insert, payload_of
from lab.evaluation.outside import read_reset
from lab.faults.ports import (
    BY_ITS_KEY,
    Call,
    Fault,
    FaultyTransport,
    MortalLane,
    NonsensePool,
    Outside,
    Ports,
    WorkerDied,
)
from orchestrator.adapters.domains.code import forget
from orchestrator.adapters.domains.folder import domain_folder, load_domain
from orchestrator.adapters.tools.transports import Transports
from orchestrator.domain.configuration import merge_sections
from orchestrator.domain.evaluations import ConversationEntry, FaultKind, TurnEntry
from orchestrator.nlu.system1 import System1
from orchestrator.res.markup import to_plain
from orchestrator.runtime.lane import LaneRunner, TurnAgent
from orchestrator.turns.cases import values_of
from orchestrator.turns.turn import FINISHED, IfBusy, Submission, TurnInput, turn_object
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TurnId, new_id
from parley.simulator import Simulator
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryWakeup
from parley.testing.memory import MemoryRecords
from parley.testing.store import MemoryStore

NEVER_MIND = "never mind"
_MOST_ATTEMPTS = 12
_MOST_OPEN = 3
_PACES_S = (20.0, 33.0)
"""Seconds between turns, at two paces. Values that differ between the paces depend on the time."""
_QUIET: JsonObject = {"resilience": {"backoff_base_s": 0.0}}
_ALWAYS_ASKED: JsonObject = {"nlu": {"mode": "system2"}}

Store = dict[str, dict[str, JsonObject]]
"""Documents by collection and key."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A turn as the user sees it, and the store after the turn.

    `at`: the turn's number in the script, or 0 outside the script. `tasks`: slot values by flow, with the top of the
    stack last; empty for completed flows. `is_open`: True if a flow or question is open. `displays`: True if the
    turn shows more than text.
    """

    at: int
    said: str
    reply: str
    status: str
    actions: Sequence[JsonObject]
    tasks: Mapping[str, JsonObject]
    is_open: bool
    displays: bool
    store: Store


@dataclass(slots=True)
class Course:
    """The course of a conversation. `heard`: all turns. `done`: executed calls. `places`: places reached, by turn."""

    heard: list[Heard] = field(default_factory=list[Heard])
    done: list[Call] = field(default_factory=list[Call])
    places: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    @property
    def script(self) -> list[Heard]:
        return [one for one in self.heard if one.at]

    @property
    def store(self) -> Store:
        return self.heard[-1].store if self.heard else {}

    def seen_before(self, line: Heard | None = None) -> Heard | None:
        """Return the last turn that displayed data, or None. `line`: search only earlier turns. Default: all turns."""
        until = len(self.heard) if line is None else self.heard.index(line)
        return next((one for one in reversed(self.heard[:until]) if one.displays), None)

    def effects_in(self, turn: int) -> list[Call]:
        return [call for call in self.done if call.turn == turn and call.has_effect]


class Workers:
    """Two workers that serve a domain and share its stores.

    The second worker has a separate copy of the domain's code.
    """

    def __init__(self, domain: str, system1: System1 | None = None) -> None:
        self._domain = domain
        self.loaded = load_domain(domain)
        self.system1 = system1 or System1.for_domain(self.loaded.domain)
        folder = domain_folder(domain)
        if folder is not None:
            forget(folder)
        self._copy = load_domain(domain)
        self.reset = read_reset(self.loaded.domain.folder)
        self._ports = Ports()
        self._backing = MemoryStore()
        self._made: dict[bytes, list[Simulator]] = {}
        self._transports: list[Transports] = []

    async def close(self) -> None:
        for transports in self._transports:
            await transports.close()

    async def take(
        self,
        conversation: ConversationEntry,
        faults: Sequence[Fault] = (),
        *,
        with_model: bool = False,
        is_later: bool = False,
        goes_on: Callable[[Course], bool] = lambda _course: True,
    ) -> Talk:
        """Run the turns of a conversation and return the talk, so that the caller can continue the conversation.

        `with_model`: True to interpret messages with a `NonsensePool`. `is_later`: True for the slower pace.
        `goes_on`: returns False if the user leaves the script.
        """
        if self.reset is not None:
            await self.reset()
        workers = self._workers(conversation, with_model=with_model)
        self._backing.documents.setdefault((DEFAULT_TENANT, ""), {}).clear()
        for worker in workers:
            worker.records[DEFAULT_TENANT] = MemoryRecords(self._backing)
            worker.signals.clear()
        self._ports.outside = Outside(faults)
        talk = Talk(conversation, workers, self._ports, _PACES_S[is_later], self._backing)
        await talk.take_script(goes_on)
        return talk

    def _workers(self, conversation: ConversationEntry, *, with_model: bool) -> list[Simulator]:
        sections = merge_sections(conversation.config, _QUIET)
        if with_model:
            sections = merge_sections(sections, _ALWAYS_ASKED)
        key = orjson.dumps([sections, with_model], option=orjson.OPT_SORT_KEYS)
        made = self._made.setdefault(key, [])
        for loaded in (self.loaded, self._copy)[len(made) :]:
            transports = Transports(loaded.domain)
            self._transports.append(transports)
            made.append(
                Simulator.of(
                    self._ports.wrap(loaded),
                    sections=sections,
                    models=NonsensePool(self._ports) if with_model else None,
                    system1=self.system1,
                    transport=FaultyTransport(self._ports, transports),
                    beside=made[0] if made else None,
                )
            )
        return made


class Talk:
    """A conversation in progress. `conversation`: its script. `pace_s`: seconds between turns."""

    def __init__(
        self,
        conversation: ConversationEntry,
        workers: Sequence[Simulator],
        ports: Ports,
        pace_s: float,
        backing: MemoryStore,
    ) -> None:
        self.course = Course()
        self.conversation = conversation
        self._workers = workers
        self._ports, self._outside = ports, ports.outside
        self._outside.break_in = self._break_in
        self._backing = backing
        self._store = MemoryStore(clock=lambda: datetime.fromtimestamp(workers[0].now, UTC))
        self._inbox = MemoryInbox(self._store)
        self._session_id = SessionId(new_id("session"))
        self._pace_s = pace_s
        self._remembered: dict[str, str] = {}
        self._offered: dict[int, Sequence[JsonObject]] = {}
        self._broke_in: list[tuple[TurnId, TurnInput]] = []
        self._at_work = 0
        self._has_moved = False
        self._start_runner()

    def _start_runner(self) -> None:
        lane = MortalLane(self._store)
        lane.ports = self._ports
        self._lane = lane
        self._runner = LaneRunner(lane, self._workers[0].live, MemoryWakeup(), self._find_agent)

    async def _find_agent(self, domain: str) -> TurnAgent:
        del domain
        agent = self._workers[self._at_work].agent
        assert agent is not None
        return agent

    async def take_script(self, goes_on: Callable[[Course], bool]) -> None:
        """Run the script with its faults until `goes_on` returns False. Later turns have no faults."""
        for at, entry in enumerate(self.conversation.turns, start=1):
            if self.course.heard and not goes_on(self.course):
                break
            await self._come_to(at)
            if self.course.heard and not goes_on(self.course):
                break
            await self._take(at, entry)
        self._outside.turn = 0
        self.course.done, self.course.places = self._outside.done, self._outside.places

    async def _come_to(self, at: int) -> None:
        """Advance the clock to a turn, and inject the faults that precede the turn."""
        self._outside.turn = at
        for worker in self._workers:
            worker.now = beginning_of(self.conversation).timestamp() + at * self._pace_s
        for fault in self._outside.faults:
            if (fault.kind, fault.turn) == (FaultKind.OTHER_WORKER, at):
                self._at_work = 1 - self._at_work
                self._start_runner()
            if (fault.kind, fault.turn) == (FaultKind.ASIDE, at):
                await self.submit(TurnInput(text=fault.at))

    async def _take(self, at: int, entry: TurnEntry) -> None:
        faults = [fault for fault in self._outside.faults if fault.turn == at]
        given = self._write(at, entry)
        doubled = next((fault.at for fault in faults if fault.kind is FaultKind.DOUBLED), None)
        await self.submit(given, at=at, key=f"key {at}" if doubled == BY_ITS_KEY else None)
        if doubled is not None:
            await self.submit(given, key=f"key {at}" if doubled == BY_ITS_KEY else None)
        for fault in faults:
            if fault.kind is FaultKind.STALE_CLICK:
                await self._click_again(fault.at)

    def _write(self, at: int, entry: TurnEntry) -> TurnInput:
        if entry.action is None:
            return TurnInput(text=insert(entry.user or "", self._remembered))
        offered = self._offered.get(at - 1, ())
        return TurnInput(action={"name": entry.action["name"], "payload": payload_of(entry.action, offered)})

    async def _click_again(self, what: str) -> None:
        """Click an action from an earlier answer, given as ``confirm of turn 2``, unless the last answer offers it."""
        name, _, number = what.partition(" of turn ")
        for action in self._offered.get(int(number), ()):
            if action["name"] == name and action not in self.course.heard[-1].actions:
                await self.submit(TurnInput(action={"name": name, "payload": action["payload"]}))
                return

    async def say_again(self, first: int) -> None:
        """Cancel open tasks, then repeat the script from turn `first` on."""
        for _ in range(_MOST_OPEN):
            last = self.course.heard[-1]
            if last.is_open or last.said == self.conversation.turns[first - 1].user:
                await self.submit(TurnInput(text=NEVER_MIND))
        for at, entry in enumerate(self.conversation.turns[first - 1 :], start=first):
            turn = await self.submit(self._write(at, entry))
            self._offered[at] = turn["actions"]

    async def submit(self, given: TurnInput, *, at: int = 0, key: str | None = None) -> JsonObject:
        """Submit a turn, run it until it has ended even if workers die, and add it to the course.

        `at`: the turn's number in the script, or 0. `key`: idempotency key, or None.
        """
        receipt = await self._inbox.submit(self._submission(given, key))
        turn = await self._see_through(receipt.turn_id)
        if at:
            self._offered[at] = turn["actions"]
        answered = [(turn, at, given)]
        while self._broke_in:
            turn_id, said = self._broke_in.pop(0)
            answered.append((await self._see_through(turn_id), 0, said))
        for one in sorted(answered, key=lambda one: one[0]["epoch"] or 0):
            self._note(*one)
        return turn

    def _submission(self, given: TurnInput, key: str | None = None) -> Submission:
        return Submission(
            session_id=self._session_id,
            input=given,
            tenant_id=DEFAULT_TENANT,
            idempotency_key=key,
            create_session=True,
            domain=self._workers[0].loaded.domain.name,
        )

    async def _see_through(self, turn_id: TurnId) -> JsonObject:
        for _ in range(_MOST_ATTEMPTS):
            record = await self._inbox.turn(DEFAULT_TENANT, turn_id)
            if record.status in FINISHED:
                break
            try:
                await self._runner.run(self._session_id)
            except WorkerDied:
                self._lane.die()
                await MemoryLane(self._store).sweep(grace_s=0.0)
                self._at_work = 1 - self._at_work
                self._start_runner()
        return turn_object(await self._inbox.turn(DEFAULT_TENANT, turn_id))

    async def _break_in(self, fault: Fault) -> None:
        stops = fault.kind is FaultKind.INTERRUPTED
        said = TurnInput(text=NEVER_MIND if stops else fault.at.partition(": ")[2])
        if_busy = IfBusy.INTERRUPT if stops else IfBusy.UNDERSTAND
        receipt = await self._inbox.submit(replace(self._submission(said), if_busy=if_busy))
        self._broke_in.append((receipt.turn_id, said))
        await self._runner.renew()

    def _note(self, turn: JsonObject, at: int, given: TurnInput) -> None:
        self._remembered |= values_of(turn)
        documents = self._backing.documents.get((DEFAULT_TENANT, ""), {})
        self.course.heard.append(
            Heard(
                at,
                given.text or f"[{(given.action or {}).get('name')}]",
                to_plain(turn["reply"] or ""),
                turn["status"],
                turn["actions"],
                {dact: {} for dact in turn["completed"]}
                | {flow["dact"]: flow["slots"] for flow in turn["flows"]},
                bool(turn["flows"]) or turn["ambiguity"] is not None,
                bool(turn["frames"]),
                orjson.loads(orjson.dumps(documents)),
            )
        )
