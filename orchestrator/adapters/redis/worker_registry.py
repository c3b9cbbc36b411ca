"""Running workers and beats: one sorted set whose entries expire unless renewed.

Only for display and probes.
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
"""Messages dropped from queues, newest first, as JSON without contents."""
MOST_REFUSED = 100
KNOWN_FOR_MS = 15_000
ANNOUNCE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProcess:
    """A running process.

    `role`: ``worker`` or ``beat``. `queues`: the queues a worker consumes. `off`: problems that disable
    background flows or jobs there.
    """

    role: str
    host: str
    pid: int
    queues: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @classmethod
    def here(cls, role: str, queues: Iterable[str] = (), off: Iterable[str] = ()) -> Self:
        """Describe this process."""
        return cls(
            role=role,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=tuple(sorted(queues)),
            off=tuple(sorted(off)),
        )


class WorkerRegistry:
    """The registry in which processes announce themselves."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._announce = redis.register_script(read_script("announce"))

    async def announce(self, process: RegisteredProcess) -> None:
        """Register or renew an entry. Raises Unavailable."""
        with translated():
            await self._announce(keys=[PROCESSES], args=[_packed(process), KNOWN_FOR_MS])

    async def leave(self, process: RegisteredProcess) -> None:
        """Remove an entry. Raises Unavailable."""
        with translated():
            await self._redis.zrem(PROCESSES, _packed(process))

    async def off(self) -> list[str]:
        """Return the reported problems that disable background flows or jobs. Raises Unavailable."""
        with translated("Redis is not responding; try again later."):
            members = await self._redis.zrange(PROCESSES, 0, -1)
        return sorted({problem for member in members for problem in read_process(member).off})


def read_process(member: bytes) -> RegisteredProcess:
    """Parse an entry; other releases may add fields."""
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
