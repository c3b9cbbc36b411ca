"""Outbox messages of commits, sent and acknowledged over the in-memory stores (RT-4)."""

from __future__ import annotations

import contextlib

import pytest

from orchestrator.errors import NotFound, Unavailable
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.testing.store import ManualClock, MemoryStore
from tests.contract.in_memory.archive import MemoryOutbox
from workers.outbox import AGAIN_AFTER_S, OutboxSender

KIND = "letter"


class Post:
    """An outbox with messages to sessions, and the delivered ones."""

    def __init__(self, *to: str) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        for number, session in enumerate(to):
            letter = OutboxMessage(number, DEFAULT_TENANT, SessionId(session), None, KIND, {"number": number})
            self.store.outbox.append(letter)
        self.arrived: list[int] = []
        self.refused: dict[str, Exception] = {}
        self.sender = OutboxSender(MemoryOutbox(self.store), {KIND: self._deliver})
        self.sender.nudge()

    async def _deliver(self, message: OutboxMessage) -> None:
        if message.session_id in self.refused:
            raise self.refused[message.session_id]
        self.arrived.append(message.id)

    async def send_later(self) -> None:
        """Send due messages after a delay."""
        self.clock.advance(AGAIN_AFTER_S + 1)
        self.sender.nudge()
        await self.sender.send_next()


async def test_each_session_gets_its_letters_in_order_and_once() -> None:
    post = Post("a", "b", "a", "a", "b")
    await post.sender.send_next()
    await post.send_later()

    assert [number for number in post.arrived if number in {0, 2, 3}] == [0, 2, 3]
    assert [number for number in post.arrived if number in {1, 4}] == [1, 4]
    assert len(post.arrived) == 5


@pytest.mark.parametrize("refusal", [Unavailable("nobody there"), NotFound("session", "b")])
async def test_who_cannot_be_reached_holds_up_nobody_else(refusal: Exception) -> None:
    """If one session fails, the others get their messages once, and the failing one gets its message later."""
    post = Post("a", "b", "c")
    post.refused["b"] = refusal
    with contextlib.suppress(NotFound):  # the caller logs it; `Unavailable` is logged where it is caught
        await post.sender.send_next()
    post.refused.clear()
    await post.send_later()

    assert sorted(post.arrived) == [0, 1, 2]
    assert post.arrived[-1] == 1
