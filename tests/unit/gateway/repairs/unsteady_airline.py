"""An airline that may or may not book, without a response, and its recorded calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.types import JsonObject


@dataclass
class Airline:
    """The external system, with its calls. The test controls if and how fast it responds."""

    silent: bool = False
    books: bool = True
    takes_s: float = 0.0
    calls: list[str] = field(default_factory=list[str])


def unsteady(base: type, airline: Airline) -> type:
    """Return a service whose bookings may or may not happen, without a response."""

    class Bookings(base):
        async def book(self, *, offer_id: str, call: Any, passenger_name: str = "") -> JsonObject:
            airline.calls.append(call.session_id)
            await asyncio.sleep(airline.takes_s)
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
