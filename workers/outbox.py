"""Deliver outbox messages after commits, with retries (RT-4)."""

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
"""A function that delivers one message, or raises Unavailable if the receiver does not respond."""


class OutboxSender:
    """A sender of outbox messages.

    Args:
        deliver: delivery functions by message kind. Messages of other kinds stay in the outbox.
        look_every_s: maximum interval between checks for due messages, in seconds.
    """

    def __init__(
        self, outbox: Outbox, deliver: Mapping[str, Deliver], *, look_every_s: float = LOOK_EVERY_S
    ) -> None:
        self._look_every_s = look_every_s
        self._outbox = outbox
        self._deliver = dict(deliver)
        self._filled = asyncio.Event()

    def nudge(self) -> None:
        """Signal that a commit added messages."""
        self._filled.set()

    async def send_next(self) -> None:
        """Wait for a `nudge`, or for `look_every_s` seconds, then send all due messages."""
        try:
            async with asyncio.timeout(self._look_every_s):
                await self._filled.wait()
            self._filled.clear()
        except TimeoutError:
            pass  # check anyway, because a process can die before it signals
        there_may_be_more = True
        while there_may_be_more:
            messages = await self._outbox.take_due(
                tuple(self._deliver), again_after_s=AGAIN_AFTER_S, limit=TAKE_AT_ONCE
            )
            there_may_be_more = len(messages) == TAKE_AT_ONCE
            await self._send(messages)

    async def _send(self, messages: Sequence[OutboxMessage]) -> None:
        """Send to sessions concurrently, and in order within a session.

        An unexpected error delays only its session, and is raised after the other messages are acknowledged.
        """
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
        return [message.id for message in messages if await self._sent(message)]

    async def _sent(self, message: OutboxMessage) -> bool:
        try:
            await self._deliver[message.kind](message)
        except Unavailable as error:
            _log.warning("Could not deliver an outbox message yet.", id=message.id, error=error)
            return False
        return True


def note_into(scratchpad: Scratchpad) -> Deliver:
    """Return a delivery function that adds a turn's scratchpad entries to its session, once per message."""

    async def deliver(message: OutboxMessage) -> None:
        entries = tuple(Entry.from_json(body) for body in message.payload["entries"])
        operation = f"outbox:{message.id}"
        await scratchpad.put(message.tenant_id, message.session_id, entries, operation=operation)

    return deliver
