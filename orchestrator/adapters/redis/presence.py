"""Which workers and beats are there: one sorted set, whose entries run out unless they are renewed.

Only for people and probes to look at; nothing is decided by it.
"""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from orchestrator.adapters.redis.client import read_script
from orchestrator.errors import Unavailable

PRESENT = "parley:present"
PRESENT_FOR_MS = 15_000
ANNOUNCE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """One process: `role` is ``worker`` or ``beat``; `queues` those that a worker takes messages from."""

    role: str
    host: str
    pid: int
    queues: tuple[str, ...] = ()

    @classmethod
    def here(cls, role: str, queues: tuple[str, ...] = ()) -> Self:
        """This process."""
        return cls(role=role, host=socket.gethostname(), pid=os.getpid(), queues=tuple(sorted(queues)))


class PresenceBoard:
    """Where processes say that they are here."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._announce = redis.register_script(read_script("announce"))

    async def announce(self, presence: Presence) -> None:
        """Be seen for another while. Raises Unavailable."""
        try:
            await self._announce(keys=[PRESENT], args=[_packed(presence), PRESENT_FOR_MS])
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis does not answer: {error}") from error

    async def leave(self, presence: Presence) -> None:
        """Be seen no more. Raises Unavailable."""
        try:
            await self._redis.zrem(PRESENT, _packed(presence))
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis does not answer: {error}") from error


def read_presence(member: bytes) -> Presence:
    """An entry of the set; those of another release may say more."""
    known: dict[str, Any] = orjson.loads(member)
    return Presence(
        role=known["role"], host=known["host"], pid=known["pid"], queues=tuple(known.get("queues", ()))
    )


def _packed(presence: Presence) -> bytes:
    return orjson.dumps(asdict(presence), option=orjson.OPT_SORT_KEYS)
