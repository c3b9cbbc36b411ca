"""Private names of kombu that submissions use, so that a release without them fails here."""

from __future__ import annotations

import inspect
from importlib.metadata import version

from kombu.transport import redis, virtual

from tests.cases import for_each
from workers.messages.envelopes import Transport


@for_each("name", ["_brpop_start", "_brpop_read", "_in_poll", "_brpop_sent_at"])
def test_a_channel_of_redis_has_what_a_move_takes_the_place_of(name: str) -> None:
    """kombu has no public hook for taking and recording a message in one step; a shorter timeout could lose it."""
    assert hasattr(redis.Channel, name)
    assert name in inspect.getsource(redis.Channel)


def test_a_transport_delivers_by_the_name_that_judges_envelopes() -> None:
    assert list(inspect.signature(virtual.Transport._deliver).parameters) == ["self", "message", "queue"]
    assert "_deliver" in vars(Transport.__mro__[1])


def test_the_release_is_the_one_that_was_read() -> None:
    assert version("kombu").startswith("5.7."), "read the diff of kombu/transport/redis.py, then move the pin"
