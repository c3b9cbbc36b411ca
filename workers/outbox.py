"""Send what commits left in the outbox, after the commit and again until it is acknowledged (RT-4)."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence

from orchestrator.errors import Unavailable
from orchestrator.ports.memory.scratchpad import Entry, Scratchpad
from orchestrator.ports.outbox import Outbox, OutboxMessage
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId

AGAIN_AFTER_S = 10.0
LOOK_EVERY_S = 5.0
TAKE_AT_ONCE = 100

_log = get_logger(__name__)

Deliver = Callable[[OutboxMessage], Awaitable[None]]
"""Delivers one message; raises Unavailable when the receiver does not answer."""


class OutboxSender:
    """Args: `deliver` maps a kind of message to the way it is delivered; other kinds stay."""

    def __init__(self, outbox: Outbox, deliver: Mapping[str, Deliver]) -> None:
        self._outbox = outbox
        self._deliver = dict(deliver)
        self._filled = asyncio.Event()

    def nudge(self) -> None:
        """Say that a commit has left something."""
        self._filled.set()

    async def send_next(self) -> None:
        """Wait for a nudge, not for long, and send everything that is due."""
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._filled.wait()
            self._filled.clear()
        except TimeoutError:
            pass  # a nudge of another process may be lost with it
        there_may_be_more = True
        while there_may_be_more:
            messages = await self._outbox.take_due(
                tuple(self._deliver), again_after_s=AGAIN_AFTER_S, limit=TAKE_AT_ONCE
            )
            there_may_be_more = len(messages) == TAKE_AT_ONCE
            await self._send(messages)

    async def _send(self, messages: Sequence[OutboxMessage]) -> None:
        """Send to sessions side by side, to each in order; what breaks for one holds up no other."""
        of_sessions: defaultdict[SessionId, list[OutboxMessage]] = defaultdict(list)
        for message in messages:
            of_sessions[message.session_id].append(message)
        ended = await asyncio.gather(*map(self._send_to_one, of_sessions.values()), return_exceptions=True)
        sent = [number for arrived in ended if isinstance(arrived, list) for number in arrived]
        if sent:
            await self._outbox.acknowledge(sent)
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure

    async def _send_to_one(self, messages: list[OutboxMessage]) -> list[int]:
        """Send to one session; gives the numbers of those that have arrived."""
        return [message.id for message in messages if await self._sent(message)]

    async def _sent(self, message: OutboxMessage) -> bool:
        try:
            await self._deliver[message.kind](message)
        except Unavailable as error:
            _log.warning("An outbox message could not be delivered yet.", id=message.id, error=error)
            return False
        return True


def note_into(scratchpad: Scratchpad) -> Deliver:
    """Put what a turn noted into its session's scratchpad, once however often it is sent."""

    async def deliver(message: OutboxMessage) -> None:
        entries = tuple(Entry.from_json(body) for body in message.payload["entries"])
        operation = f"outbox:{message.id}"
        await scratchpad.put(message.tenant_id, message.session_id, entries, operation=operation)

    return deliver
