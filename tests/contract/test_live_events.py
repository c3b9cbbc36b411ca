"""Contract of live events: in order, with the text of a running answer for late listeners (RT-15)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.events import RedisEvents
from orchestrator.ports.turns import LiveEvents
from orchestrator.turns.event import LOOK, Event
from orchestrator.turns.subscription import MOST_WAITING
from orchestrator.types import SessionId, TurnId, new_id
from parley.testing.live import MemoryLiveEvents

TURN = TurnId("turn_1")


@pytest.fixture(params=["memory", "redis"])
async def live(request: pytest.FixtureRequest) -> AsyncIterator[LiveEvents]:
    if request.param == "memory":
        yield MemoryLiveEvents()
        return
    async with connect(request.getfixturevalue("redis_url")) as redis:
        events = RedisEvents(redis)
        yield events
        await events.close()


@pytest.fixture
def session() -> SessionId:
    return SessionId(new_id("session"))


def token(session: SessionId, offset: int, text: str, turn: TurnId = TURN) -> Event:
    return Event(session, "token", turn, {"text": text, "offset": offset})


def answer(session: SessionId, number: int = 1) -> Event:
    return Event(session, "answer", TURN, {"reply": "Grüße aus Oslo"}, number)


async def test_who_comes_while_an_answer_is_streamed_hears_all_of_it(
    live: LiveEvents, session: SessionId
) -> None:
    await live.publish(session, (token(session, 0, "Grüße "),))
    await live.publish(session, (token(session, 6, "aus"), token(session, 9, " ")))

    async with live.listen(session, with_streamed=True) as late:
        so_far = await anext(late)
        await live.publish(session, (token(session, 10, "Oslo"),))
        await live.publish(session, (answer(session),))

        assert so_far == token(session, 0, "Grüße aus ")
        assert await anext(late) == token(session, 10, "Oslo")
        assert await anext(late) == answer(session)


async def test_no_piece_comes_twice(live: LiveEvents, session: SessionId) -> None:
    """The text so far contains the pieces that arrived between subscribing and reading it."""
    async with live.listen(session, with_streamed=True) as late:
        await live.publish(session, (token(session, 0, "one "),))
        await live.publish(session, (token(session, 4, "two "),))
        first = await anext(late)
        await live.publish(session, (token(session, 8, "three"),))
        second = await anext(late)

    assert first == token(session, 0, "one two ")
    assert second == token(session, 8, "three")


async def test_a_turn_that_begins_anew_replaces_its_text(live: LiveEvents, session: SessionId) -> None:
    await live.publish(session, (token(session, 0, "before the crash"),))
    await live.publish(session, (token(session, 0, "after"),))

    async with live.listen(session, with_streamed=True) as late:
        assert await anext(late) == token(session, 0, "after")


async def test_half_a_text_is_not_told(live: LiveEvents, session: SessionId) -> None:
    """If the store has lost the start of a text, listeners wait for the answer."""
    await live.publish(session, (token(session, 50, "the end of it"),))
    await live.publish(session, (token(session, 63, "."),))

    async with live.listen(session, with_streamed=True) as late:
        await live.publish(session, (answer(session),))
        assert await anext(late) == answer(session)


async def test_a_text_is_forgotten_with_its_answer(live: LiveEvents, session: SessionId) -> None:
    await live.publish(session, (token(session, 0, "Grüße"),))
    await live.publish(session, (answer(session),))

    async with live.listen(session, with_streamed=True) as late:
        await live.publish(session, (answer(session, 2),))
        assert await anext(late) == answer(session, 2)


async def test_listeners_are_made_to_look_at_the_log(live: LiveEvents, session: SessionId) -> None:
    async with live.listen(session) as listener:
        await live.publish(session, ())
        assert (await anext(listener)).type == LOOK


async def test_a_slow_listener_is_bounded_and_told_to_look(live: LiveEvents, session: SessionId) -> None:
    """The listener loses hints, but always receives a marker to read the log."""
    async with live.listen(session) as slow, live.listen(session) as quick:
        for number in range(1, MOST_WAITING + 2):
            await live.publish(session, (answer(session, number),))
            assert (await anext(quick)).number == number

        assert (await anext(slow)).type == LOOK
