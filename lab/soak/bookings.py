"""Soak-test conversations: each books a flight, asks about another flight in between, and lists the bookings.

Each conversation has a separate user, so that a duplicate booking shows up in that user's list.
"""

import asyncio
import random
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from lab.soak.checks import ANSWERED, UNFINISHED
from orchestrator.errors import InboxFull, ParleyError, Unavailable
from orchestrator.types import JsonObject
from parley_client import AsyncClient

Answer = TypeVar("Answer")

CITIES = ("Oslo", "Madrid", "Paris", "Rome", "Berlin", "Vienna", "Lisbon", "Dublin", "Athens", "Prague")
FIRST_DAY, LAST_DAY = 2, 300
WAIT_S = 5.0
AGAIN_AFTER_S = 0.2
LISTED = re.compile(r"^- [0-9A-Z]{6}:", re.MULTILINE)  # an entry in the list of bookings


@dataclass(slots=True)
class Tally:
    """The results of the conversations.

    `accepted`: turn IDs by idempotency key. `unreachable`: number of requests repeated after Unavailable or InboxFull.
    """

    accepted: dict[str, str] = field(default_factory=dict[str, str])
    breaches: list[str] = field(default_factory=list[str])
    conversations: int = 0
    unreachable: int = 0


@dataclass(slots=True)
class Booker:
    client: AsyncClient
    name: str
    chance: random.Random
    tally: Tally

    async def keep_booking(self, stopping: threading.Event) -> None:
        """Run conversations until `stopping` is set and the current conversation has ended."""
        number = 0
        while not stopping.is_set():
            number += 1
            try:
                await self._book(f"{self.name}-{number}")
            except _Broken as broken:
                self.tally.breaches.append(str(broken))

    async def _book(self, session: str) -> None:
        start, end, elsewhere = self.chance.sample(CITIES, 3)
        day = datetime.now(UTC).date() + timedelta(days=self.chance.randint(FIRST_DAY, LAST_DAY))
        await self._insist(
            lambda: self.client.create_session("travel", session_id=session, user_id=f"user-{session}")
        )
        await self._say(session, 1, f"Book a flight from {start} to {end}")
        await self._say(session, 2, f"What flights are there from {start} to {elsewhere} on {day}?")
        asked = await self._say(session, 3, f"on {day}")
        booked = await self._say(session, 4, "yes") if asked["ambiguity"] is not None else asked
        shown = await self._say(session, 5, "show my bookings")
        await self._check(session, booked, shown)
        self.tally.conversations += 1

    async def _check(self, session: str, booked: JsonObject, shown: JsonObject) -> None:
        """Check that a confirmed booking occurs exactly once in the ledger and in the list of bookings."""
        expected = 1 if "book_flight" in booked["completed"] else 0
        effects = await self._insist(lambda: self.client.effects(session))
        done = sum(effect["tool_id"] == "flight_book" and effect["status"] == "done" for effect in effects)
        listed = len(LISTED.findall(shown["reply"]))
        if not (expected == done == listed):
            self.tally.breaches.append(
                f"{session}: {expected} booking was confirmed, {done} are in the ledger,"
                f" {listed} are listed: {shown['reply']!r} after {booked['reply']!r}"
            )

    async def _say(self, session: str, number: int, text: str) -> JsonObject:
        """Submit the conversation's turn `number` with the same idempotency key until it has ended. Return the turn.

        Raises _Broken if the turn has no answer.
        """
        key = f"{session}:{number}"
        while True:
            turn = await self._insist(
                lambda: self.client.submit(session, text, idempotency_key=key, wait_s=WAIT_S)
            )
            known = self.tally.accepted.setdefault(key, turn["turn_id"])
            if known != turn["turn_id"]:
                self.tally.breaches.append(f"{session}: turn {known} was forgotten and accepted again")
            if turn["status"] not in UNFINISHED:
                break
        if turn["status"] != ANSWERED:
            raise _Broken(f"{session}: turn {number} ended as {turn['status']}")
        return turn

    async def _insist(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Repeat a call while the gateway is unavailable or the inbox is full. Raises _Broken for other errors."""
        while True:
            try:
                return await call()
            except (Unavailable, InboxFull):
                self.tally.unreachable += 1
                await asyncio.sleep(AGAIN_AFTER_S)
            except ParleyError as error:
                raise _Broken(f"{self.name}: a request was refused with {error.code}: {error}") from error


class _Broken(Exception):
    """Raised when a missing answer or an unexpected refusal ends a conversation."""
