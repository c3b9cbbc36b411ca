"""The workers and beats that are alive: one sorted set, whose entries run out unless they are renewed.

Only for people and probes to look at; nothing is decided by it.
"""

import os
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated

PROCESSES = "parley:processes"
REFUSED = "parley:refused"
"""What was dropped from queues, the latest first, as JSON without contents."""
MOST_REFUSED = 100
KNOWN_FOR_MS = 15_000
ANNOUNCE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProcess:
    """One process: `role` is ``worker`` or ``beat``; `queues` those that a worker takes messages from.

    `off`: mistakes of Internal flows or jobs that are therefore not carried out there.
    """

    role: str
    host: str
    pid: int
    queues: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @classmethod
    def here(cls, role: str, queues: Iterable[str] = (), off: Iterable[str] = ()) -> Self:
        """This process."""
        return cls(
            role=role,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=tuple(sorted(queues)),
            off=tuple(sorted(off)),
        )


class WorkerRegistry:
    """Where processes announce themselves."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._announce = redis.register_script(read_script("announce"))

    async def announce(self, process: RegisteredProcess) -> None:
        """Be known for another while. Raises Unavailable."""
        with translated():
            await self._announce(keys=[PROCESSES], args=[_packed(process), KNOWN_FOR_MS])

    async def leave(self, process: RegisteredProcess) -> None:
        """Be known no more. Raises Unavailable."""
        with translated():
            await self._redis.zrem(PROCESSES, _packed(process))

    async def off(self) -> list[str]:
        """Mistakes for which Internal flows or jobs are off, as processes tell them. Raises Unavailable."""
        with translated("Redis does not say which Internal flows are off; try again later."):
            members = await self._redis.zrange(PROCESSES, 0, -1)
        return sorted({problem for member in members for problem in read_process(member).off})


def read_process(member: bytes) -> RegisteredProcess:
    """An entry of the set; those of another release may say more."""
    known: dict[str, Any] = orjson.loads(member)
    return RegisteredProcess(
        role=known["role"],
        host=known["host"],
        pid=known["pid"],
        queues=tuple(known.get("queues", ())),
        off=tuple(known.get("off", ())),
    )


def _packed(process: RegisteredProcess) -> bytes:
    return orjson.dumps(asdict(process), option=orjson.OPT_SORT_KEYS)
