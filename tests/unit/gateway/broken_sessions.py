"""Sessions that are broken in every way an operator meets, repaired over HTTP alone, and judged by what is stored.

Making one goes through conversations and the lane; repairing and judging, through the gateway's calls.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import httpx
import orjson

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.dialogue.changes.repair import repair
from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.nlu.readers.system1 import System1
from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import Inbox
from orchestrator.runtime.lane import LaneRunner, TurnAgent
from orchestrator.simulator import Simulator
from orchestrator.testing.live import MemoryLiveEvents, MemoryWakeup
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, new_id
from tests.contract.factories import commit_for

WHY = "The user has called."
TO_MADRID = "Book a flight from Oslo to Madrid tomorrow"
TO_ROME = "Book a flight from Oslo to Rome tomorrow"


@dataclass
class Airline:
    """The outside world: whether a booking is answered, and what was called."""

    silent: bool = False
    books: bool = True
    calls: list[str] = field(default_factory=list[str])


@cache
def trained() -> tuple[LoadedDomain, System1]:
    loaded = load_domain("travel")
    return loaded, System1.for_domain(loaded.domain)


def _unsteady(base: type, airline: Airline) -> type:
    """Bookings that may be made, or not, without an answer."""

    class Bookings(base):
        async def book(self, *, offer_id: str, call: Any, passenger_name: str = "") -> JsonObject:
            airline.calls.append(call.session_id)
            if airline.silent and not airline.books:
                raise ToolFailure(FailureCategory.TIMEOUT, "The line went dead.", undecided=True)
            made = await super().book(offer_id=offer_id, call=call, passenger_name=passenger_name)
            if airline.silent:
                raise ToolFailure(FailureCategory.TIMEOUT, "The line went dead.", undecided=True)
            return made

        async def outcome(self, *, idempotency_key: str) -> JsonObject:
            if airline.silent:
                return {"status": "unknown"}
            return await super().outcome(idempotency_key=idempotency_key)

    return Bookings


@dataclass
class Ticket:
    """A broken session: what an operator is told of it, and what was true when it was opened."""

    session: SessionId
    kind: str
    wants: list[JsonObject] = field(default_factory=list[JsonObject])
    booked: JsonObject | None = None
    expects: Callable[[JsonObject], bool] = lambda _: True
    turns: str | None = None
    epoch: int = 0
    calls: int = 0
    posts: int = 0


class Site:
    """Broken sessions over one pair of inbox and lanes, with the agent of the travel domain."""

    def __init__(
        self, inbox: Inbox, make_lane: Callable[..., Awaitable[Lane]], http: httpx.AsyncClient
    ) -> None:
        loaded, system1 = trained()
        self.airline = Airline()
        services = {**loaded.services, "Bookings": _unsteady(loaded.services["Bookings"], self.airline)}
        self.simulator = Simulator.of(replace(loaded, services=services), system1=system1)
        self.inbox, self.make_lane, self.http = inbox, make_lane, http
        self.lane: Lane
        self.hand: Lane

    async def open(self) -> None:
        self.lane, self.hand = await self.make_lane(), await self.make_lane(max_attempts=1)
        self.runner = LaneRunner(self.lane, MemoryLiveEvents(), MemoryWakeup(), self._agent)

    async def _agent(self, _: str) -> TurnAgent:
        assert self.simulator.agent is not None
        return self.simulator.agent

    # What users and workers do.

    async def submit(self, session: SessionId, text: str) -> str:
        self.simulator.now += 20
        given = Submission(session, TurnInput(text), DEFAULT_TENANT, create_session=True, domain="travel")
        return (await self.inbox.submit(given)).turn_id

    async def say(self, session: SessionId, text: str) -> JsonObject:
        turn_id = await self.submit(session, text)
        await self.runner.run(session)
        return (await self.inbox.turn(DEFAULT_TENANT, turn_id)).result or {}

    async def edit(self, session: SessionId, change: Callable[[JsonObject], None]) -> None:
        """Commit a state that no turn of ours would have left."""
        await self.submit(session, "hello")
        lease = await self.hand.claim(session)
        assert lease is not None
        before = orjson.loads(lease.state or b"{}")
        after = copy.deepcopy(before) | {"epoch": lease.epoch + 1}
        change(after)
        await self.hand.commit(lease, commit_for(lease, before=before, after=after))

    # What operators do.

    async def get(self, path: str) -> Any:
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def look(self, session: str) -> Any:
        return await self.get(f"/v1/sessions/{session}/repairs")

    async def post(self, session: SessionId, repairs: list[JsonObject], epoch: int) -> httpx.Response:
        """Order repairs, and let a worker do its work until they are made."""
        body = {"repairs": repairs, "epoch": epoch, "why": WHY}
        path = f"/v1/sessions/{session}/repairs?wait=30"
        posting = asyncio.create_task(self.http.post(path, json=body))
        while not posting.done():
            await asyncio.sleep(0.002)
            await self.runner.run(session)
        return await posting


# Ways to break a session: each leaves a ticket.


async def _offered(site: Site, session: SessionId, text: str = TO_MADRID) -> None:
    turn = await site.say(session, text)
    assert "Shall I book it?" in turn["reply"], turn["reply"]


async def _two_tasks(site: Site, session: SessionId) -> None:
    await site.say(session, "I want to fly to Rome")
    await site.say(session, "I want to cancel a booking")


async def active_below(site: Site, session: SessionId) -> Ticket:
    await _two_tasks(site, session)

    def change(state: JsonObject) -> None:
        state["stack"][0].update(state="Active")
        state["stack"][0].pop("reason", None)

    await site.edit(session, change)
    return Ticket(session, "active_below")


async def asleep_on_top(site: Site, session: SessionId) -> Ticket:
    await site.say(session, "I want to fly to Rome")
    await site.edit(session, lambda state: state["stack"][-1].update(state="Pending", reason="interrupted"))
    return Ticket(session, "asleep_on_top")


async def lost_plan(site: Site, session: SessionId) -> Ticket:
    await site.say(session, "I want to fly to Rome")
    await site.edit(session, lambda state: state["stack"][0].update(plan_id="flow_gone"))
    return Ticket(session, "lost_plan")


async def loose_approval(site: Site, session: SessionId) -> Ticket:
    await site.say(session, "I want to fly to Rome")
    approval = {
        "approval_id": new_id("approval"),
        "flow_id": "flow_gone",
        "tool_id": "flight_book",
        "arguments": {},
        "asked_at": 1.0,
        "expires_at": 9e9,
    }
    await site.edit(session, lambda state: state["approvals"].append(approval))
    return Ticket(session, "loose_approval", expects=lambda state: state["approvals"] == [])


async def loose_question(site: Site, session: SessionId) -> Ticket:
    await site.say(session, "I want to fly to Rome")
    question = {"level": "specific", "flow_id": "flow_gone", "slot": "date", "asked": 1}
    await site.edit(session, lambda state: state["ambiguity"]["open"].append(question))
    return Ticket(session, "loose_question")


async def waits_for_ever(site: Site, session: SessionId) -> Ticket:
    """A task whose context nobody gathers any more."""
    await _offered(site, session)

    def change(state: JsonObject) -> None:
        failure = {"category": "not_found", "message": "none", "evidence": {}}
        context = {"run_id": "run_gone", "until": 9e9, "failure": failure}
        state["stack"][-1].update(state="Pending", reason="awaiting_context", interrupted_at=1.0)
        state["stack"][-1].setdefault("notes", {})["context"] = context

    await site.edit(session, change)
    wants: list[JsonObject] = [{"kind": "resume", "flow": "book_flight"}]
    return Ticket(
        session, "waits_for_ever", wants, expects=lambda state: state["stack"][-1]["state"] == "Active"
    )


async def wrong_slot(site: Site, session: SessionId) -> Ticket:
    await _offered(site, session)
    wants: list[JsonObject] = [
        {"kind": "fill", "flow": "book_flight", "slot": "destination", "value": "Paris"}
    ]
    return Ticket(
        session,
        "wrong_slot",
        wants,
        expects=lambda state: state["stack"][-1]["slots"]["destination"]["value"] == "CDG",
    )


async def unwanted_task(site: Site, session: SessionId) -> Ticket:
    await _two_tasks(site, session)
    wants: list[JsonObject] = [{"kind": "drop", "flow": "cancel_booking"}]
    return Ticket(
        session,
        "unwanted_task",
        wants,
        expects=lambda state: [flow["dact"] for flow in state["stack"]] == ["book_flight"],
    )


async def stuck_plan(site: Site, session: SessionId) -> Ticket:
    """A plan that nobody wants carried out any more; one of its steps is Active below the top."""
    await site.say(session, "plan a weekend in Lisbon for two under 1200 euros")
    await site.say(session, "Oslo")

    def change(state: JsonObject) -> None:
        state["stack"][0].update(state="Active")
        state["stack"][0].pop("reason", None)

    await site.edit(session, change)
    wants: list[JsonObject] = [{"kind": "drop", "flow": "plan_trip"}]
    return Ticket(session, "stuck_plan", wants, expects=lambda state: state["stack"] == [])


async def quarantined(site: Site, session: SessionId) -> Ticket:
    await site.say(session, "hello")
    await site.submit(session, "I want to fly to Rome")
    lease = await site.hand.claim(session)
    assert lease is not None
    await site.hand.abandon(lease, error="a worker's fault")
    assert await site.hand.claim(session) is None
    return Ticket(session, "quarantined", turns=random.Random(session).choice(["retry", "drop"]))


async def lost_lease(site: Site, session: SessionId) -> Ticket:
    """A worker that holds the lane and does nothing."""
    await site.say(session, "hello")
    await site.submit(session, "I want to fly to Rome")
    assert await (await site.make_lane()).claim(session) is not None
    return Ticket(session, "lost_lease")


async def _unknown(site: Site, session: SessionId, *, books: bool) -> JsonObject:
    await _offered(site, session)
    site.airline.silent, site.airline.books = True, books
    turn = await site.say(session, "yes")
    site.airline.silent, site.airline.books = False, True
    (entry,) = (await site.look(session))["effects"]
    assert entry["status"] in {"unknown", "started"}, turn["reply"]
    return entry


async def unknown_and_done(site: Site, session: SessionId) -> Ticket:
    entry = await _unknown(site, session, books=True)
    services = site.simulator.records[DEFAULT_TENANT]
    (booking,) = await services.find("bookings", {"session": session})
    schema = site.simulator.loaded.domain.tools["flight_book"].output_schema["properties"]
    booked = {name: value for name, value in booking.items() if name in schema and value is not None}
    wants: list[JsonObject] = [
        {"kind": "mark", "fingerprint": entry["fingerprint"], "done": True, "result": booked}
    ]
    return Ticket(session, "unknown_and_done", wants, booked)


async def unknown_and_not_done(site: Site, session: SessionId) -> Ticket:
    entry = await _unknown(site, session, books=False)
    wants: list[JsonObject] = [{"kind": "mark", "fingerprint": entry["fingerprint"], "done": False}]
    return Ticket(session, "unknown_and_not_done", wants)


async def wrong_booking(site: Site, session: SessionId) -> Ticket:
    """A booking that was cancelled by telephone."""
    await _offered(site, session, TO_ROME)
    await site.say(session, "yes")
    (entry,) = (await site.look(session))["effects"]
    assert entry["status"] == "done"
    return Ticket(
        session,
        "wrong_booking",
        [{"kind": "mark", "fingerprint": entry["fingerprint"], "done": False}],
        expects=lambda state: [note["status"] for note in state["effects"]] == ["compensated"],
    )


async def wants_a_person(site: Site, session: SessionId) -> Ticket:
    await _offered(site, session)
    await site.say(session, "I want to talk to a human")
    wants: list[JsonObject] = [
        {"kind": "take_over"},
        {"kind": "say", "text": "I am Ann. What can I do for you?"},
        {"kind": "hand_back"},
    ]
    return Ticket(session, "wants_a_person", wants, expects=lambda state: "person" not in state)


KINDS: tuple[Callable[[Site, SessionId], Awaitable[Ticket]], ...] = (
    active_below,
    asleep_on_top,
    lost_plan,
    loose_approval,
    loose_question,
    waits_for_ever,
    wrong_slot,
    unwanted_task,
    stuck_plan,
    quarantined,
    lost_lease,
    unknown_and_done,
    unknown_and_not_done,
    wrong_booking,
    wants_a_person,
)


async def break_one(site: Site, number: int, numbers: random.Random) -> Ticket:
    """Break a session in the way of its number, after some other talk."""
    session = SessionId(new_id("session"))
    for _ in range(numbers.randrange(3)):
        await site.say(session, numbers.choice(["hello", "thank you", "what can you do?"]))
    ticket = await KINDS[number % len(KINDS)](site, session)
    ticket.epoch = (await site.look(session))["epoch"]
    ticket.calls = len(site.airline.calls)
    return ticket


async def repair_one(site: Site, ticket: Ticket) -> list[str]:
    """Do what an operator does, by the gateway's calls alone; gives what went wrong on the way."""
    trouble = await site.look(ticket.session)
    kinds = {fit["repair"]["kind"] for fit in trouble["fits"]}
    steps: list[list[JsonObject]] = [[{"kind": kind}] for kind in ("release", "mend") if kind in kinds]
    steps += [[want] for want in ticket.wants]
    for turn in trouble["turns"]:
        if turn["status"] == "quarantined":
            answer = await site.http.post(f"/v1/turns/{turn['turn_id']}/{ticket.turns}")
            if answer.status_code != 200:
                return [answer.text]
    for repairs in steps:
        path = f"/v1/sessions/{ticket.session}/repairs/preview"
        preview = (await site.http.post(path, json={"repairs": repairs})).json()
        if preview.get("refused") != []:
            return [f"{ticket.kind}: the preview refuses {repairs}: {preview}"]
        early = await site.post(ticket.session, repairs, preview["epoch"] + 1)
        made = await site.post(ticket.session, repairs, preview["epoch"])
        ticket.posts += 1
        if (early.status_code, made.status_code) != (409, 200):
            return [f"{ticket.kind}: {repairs} gave {early.text} and {made.text}"]
        told = made.json()
        if (told["done"], told["reply"]) != (preview["done"], preview["told"]):
            return [f"{ticket.kind}: {repairs} did {told}, and not {preview}"]
    await site.runner.run(ticket.session)
    return []


async def judge(site: Site, ticket: Ticket, by: str) -> list[str]:
    """Say what is wrong with a repaired session: its state, its ledger, its history, its audit."""
    found: list[str] = []
    session = await site.get(f"/v1/sessions/{ticket.session}")
    body = session["state"]
    state = DialogueState.from_dict(body, site.simulator.loaded.domain.flows)
    there = {"", *(flow.flow_id for flow in state.stack.flows)}
    found += [*state.stack.check(), *repair(body)[1]]
    found += [
        f"a question of {one.flow_id}" for one in state.ambiguity.open if (one.flow_id or "") not in there
    ]
    if not ticket.expects(body):
        found.append("it is not as was wanted")
    if len(site.airline.calls) != ticket.calls:
        found.append("a repair has called a tool")
    events = await _events(site, ticket.session)
    signed = [event["payload"] for event in events if event["type"] == "repaired"]
    if len(signed) != ticket.posts or any((one["by"], one["why"]) != (by, WHY) for one in signed):
        found.append(f"{ticket.posts} repairs were made, and {len(signed)} are signed")
    lines = await site.get(f"/v1/sessions/{ticket.session}/history?limit=1000")
    told = [one for one in signed if any(repair["kind"] in _TOLD for repair in one["repairs"])]
    if len([line for line in lines if line["role"] == "operator"]) != len(told):
        found.append("the history does not say who repaired it")
    if (await site.look(ticket.session))["wrong"]:
        found.append("something is still wrong")
    return [f"{ticket.kind}: {one}" for one in found]


_TOLD = {"fill", "drop", "resume", "mark", "take_over", "say", "hand_back"}


async def _events(site: Site, session: str) -> list[Any]:
    answer = await site.http.get(f"/v1/sessions/{session}/events?follow=false")
    lines = answer.text.splitlines()
    return [orjson.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


async def goes_on(site: Site, ticket: Ticket) -> list[str]:
    """Let the user go on: yes to what is offered, which is done at most once."""
    before = [call for call in site.airline.calls if call == ticket.session]
    turn = await site.say(ticket.session, "yes")
    found = [] if turn.get("status") == "done" and turn["reply"] else [f"a yes gave {turn}"]
    made = len([call for call in site.airline.calls if call == ticket.session]) - len(before)
    if made != (ticket.kind == "unknown_and_not_done"):
        found.append(f"a yes made {made} bookings")
    if ticket.kind == "unknown_and_done" and (ticket.booked or {})["booking_ref"] not in turn["reply"]:
        found.append(f"the booking is not told: {turn['reply']}")
    return [f"{ticket.kind}: {one}" for one in found]
