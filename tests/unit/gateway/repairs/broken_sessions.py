"""Sessions that are broken in every way an operator meets, through conversations and the session lane."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import orjson

from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import Inbox, LiveEvents
from orchestrator.runtime.lane import LaneRunner, TurnAgent
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, ToolId, TurnId, new_id
from parley.simulator import Simulator
from parley.testing.live import MemoryWakeup
from tests.contract.factories import claim, commit_for, opening
from tests.trained import trained
from tests.unit.gateway.repairs.unsteady_airline import Airline, unsteady

WHY = "The user has called."
TO_MADRID = "Book a flight from Oslo to Madrid tomorrow"
TO_ROME = "Book a flight from Oslo to Rome tomorrow"


@dataclass
class Ticket:
    """A broken session, with the operator's instructions and the facts from when it was opened."""

    session: SessionId
    kind: str
    wants: list[JsonObject] = field(default_factory=list[JsonObject])
    booked: JsonObject | None = None
    expects: Callable[[JsonObject], bool] = lambda _: True
    epoch: int = 0
    calls: int = 0
    posts: int = 0


class Site:
    """Broken sessions over one inbox and its lanes, with the agent of the travel domain."""

    def __init__(
        self,
        inbox: Inbox,
        make_lane: Callable[..., Awaitable[Lane]],
        http: httpx.AsyncClient,
        live: LiveEvents,
    ) -> None:
        loaded, system1 = trained("travel")
        self.airline = Airline()
        services = {**loaded.services, "Bookings": unsteady(loaded.services["Bookings"], self.airline)}
        self.simulator = Simulator.of(replace(loaded, services=services), system1=system1)
        self.inbox, self.make_lane, self.http, self.live = inbox, make_lane, http, live
        self.lane: Lane
        self.hand: Lane

    async def open(self) -> None:
        self.lane, self.hand = await self.make_lane(), await self.make_lane(max_attempts=1)
        self.runner = LaneRunner(self.lane, self.live, MemoryWakeup(), self.find_agent)

    async def find_agent(self, _: str) -> TurnAgent:
        assert self.simulator.agent is not None
        return self.simulator.agent

    # Users and workers

    async def submit(self, session: SessionId, text: str) -> TurnId:
        self.simulator.now += 20
        return (await self.inbox.submit(opening(session, text))).turn_id

    async def say(self, session: SessionId, text: str) -> JsonObject:
        turn_id = await self.submit(session, text)
        await self.runner.run(session)
        return (await self.inbox.turn(DEFAULT_TENANT, turn_id)).result or {}

    async def edit(self, session: SessionId, change: Callable[[JsonObject], None]) -> None:
        """Commit a state that no real turn would leave."""
        await self.submit(session, "hello")
        lease = await claim(self.hand, session)
        before = orjson.loads(lease.present_state or b"{}")
        after = copy.deepcopy(before) | {"epoch": lease.epoch + 1}
        change(after)
        await self.hand.commit(lease, commit_for(lease, before=before, after=after))

    # Operators

    async def get(self, path: str) -> Any:
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def look(self, session: str) -> Any:
        return await self.get(f"/v1/sessions/{session}/repairs")

    async def post(self, session: SessionId, repairs: list[JsonObject], epoch: int) -> httpx.Response:
        """Request repairs, and run a worker until they are done."""
        body = {"repairs": repairs, "epoch": epoch, "why": WHY}
        path = f"/v1/sessions/{session}/repairs?wait=30"
        posting = asyncio.create_task(self.http.post(path, json=body))
        while not posting.done():
            await asyncio.sleep(0.005)
            await self.runner.run(session)
        return await posting


# Ways to break a session, each with a ticket


async def _offered(site: Site, session: SessionId, text: str = TO_MADRID) -> None:
    turn = await site.say(session, text)
    assert "Shall I book it?" in turn["reply"], turn["reply"]


async def _two_tasks(site: Site, session: SessionId) -> None:
    await site.say(session, "I want to fly to Rome")
    await site.say(session, "I want to cancel a booking")


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
    """Leave a plan that the user no longer wants."""
    await site.say(session, "plan a weekend in Lisbon for two under 1200 euros")
    await site.say(session, "Oslo")
    wants: list[JsonObject] = [{"kind": "drop", "flow": "plan_trip"}]
    return Ticket(session, "stuck_plan", wants, expects=lambda state: state["stack"] == [])


async def quarantined(site: Site, session: SessionId) -> Ticket:
    await site.say(session, "hello")
    await site.submit(session, "I want to fly to Rome")
    lease = await claim(site.hand, session)
    await site.hand.abandon(lease, error="a worker's fault")
    assert await site.hand.claim(session) is None
    kind = random.Random(session).choice(["retry", "give_up"])
    return Ticket(session, "quarantined", [{"kind": kind, "turn": lease.work.turn_id}])


async def lost_lease(site: Site, session: SessionId) -> Ticket:
    """Leave a lane with a worker that does nothing."""
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
    schema = site.simulator.loaded.domain.tools[ToolId("flight_book")].output_schema["properties"]
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
    """Leave a booking that was canceled by phone."""
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
    """Break a session in the way that `number` selects, after some small talk."""
    session = SessionId(new_id("session"))
    for _ in range(numbers.randrange(3)):
        await site.say(session, numbers.choice(["hello", "thank you", "what can you do?"]))
    ticket = await KINDS[number % len(KINDS)](site, session)
    ticket.epoch = (await site.look(session))["epoch"]
    ticket.calls = len(site.airline.calls)
    return ticket
