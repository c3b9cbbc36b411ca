"""The registry of running worker and beat processes, for display and probes.

The registry is a sorted set whose entries expire unless they are renewed.
"""

import os
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson
from pydantic import TypeAdapter
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated

PROCESSES = "parley:processes"
REFUSED = "parley:refused"
"""Redis key of the list of dropped messages, newest first, as JSON without the messages' contents."""
MOST_REFUSED = 100
KNOWN_FOR_MS = 15_000
ANNOUNCE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProcess:
    """A running worker or beat process.

    Args:
        role: ``worker`` or ``beat``.
        queues: the queues that a worker consumes.
        off: problems that disable background flows or jobs in this process.
    """

    role: str
    host: str
    pid: int
    queues: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @classmethod
    def here(cls, role: str, queues: Iterable[str] = (), off: Iterable[str] = ()) -> Self:
        return cls(
            role=role,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=tuple(sorted(queues)),
            off=tuple(sorted(off)),
        )


_PROCESS = TypeAdapter(RegisteredProcess)


class WorkerRegistry:
    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._announce = redis.register_script(read_script("announce"))

    async def announce(self, process: RegisteredProcess) -> None:
        """Add or renew the process's entry. Raises Unavailable."""
        with translated():
            await self._announce(keys=[PROCESSES], args=[_packed(process), KNOWN_FOR_MS])

    async def leave(self, process: RegisteredProcess) -> None:
        with translated():
            await self._redis.zrem(PROCESSES, _packed(process))

    async def off(self) -> list[str]:
        """Return the problems that disable background flows or jobs in any process. Raises Unavailable."""
        with translated():
            members = await self._redis.zrange(PROCESSES, 0, -1)
        return sorted({problem for member in members for problem in read_process(member).off})


def read_process(member: bytes) -> RegisteredProcess:
    """Parse an entry. Ignore unknown fields, which other releases may add."""
    return _PROCESS.validate_json(member)


def _packed(process: RegisteredProcess) -> bytes:
    return orjson.dumps(asdict(process), option=orjson.OPT_SORT_KEYS)
