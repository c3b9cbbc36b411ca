"""Tells listeners what a turn is doing while it does it, when that takes a moment (RT-15).

Hints only: the same events are in the turn's commit, with their numbers. A quick turn tells nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from orchestrator.ports.turns import LiveEvents
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease
from orchestrator.types import JsonObject

QUIET_FOR_S = 0.1
"""A turn that is done by then costs no message; shorter than that, people see no delay."""

Tell: TypeAlias = Callable[[str, JsonObject], None]
"""Takes the type of an event and its payload."""


def tell_nobody(kind: str, payload: JsonObject) -> None:
    """For turns that nobody listens to."""


class TurnHints:
    """One attempt of one turn; `close` it when the attempt ends."""

    def __init__(self, live: LiveEvents, lease: Lease) -> None:
        self._live = live
        self._session_id = lease.session_id
        self._turn_id = lease.work.turn_id
        self._waiting: list[Event] = []
        self._quiet = asyncio.get_running_loop().call_later(QUIET_FOR_S, self._begin)
        self._begun = False
        self._sending: asyncio.Task[None] | None = None
        self.tell("started", {"seq": lease.work.seq})

    def tell(self, kind: str, payload: JsonObject) -> None:
        """Tell it now, or once the turn has taken a moment."""
        self._waiting.append(Event(self._session_id, kind, self._turn_id, payload))
        if self._begun:
            self._send()

    def close(self) -> None:
        """Tell nothing more: what was to be told is about to be committed, or begun anew."""
        self._quiet.cancel()
        self._waiting.clear()

    def _begin(self) -> None:
        self._begun = True
        self._send()

    def _send(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._publish(), name="hints of a turn")

    async def _publish(self) -> None:
        while self._waiting:
            told, self._waiting = tuple(self._waiting), []
            await self._live.publish(self._session_id, told)
