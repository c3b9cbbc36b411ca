"""Circuit breaker states of all processes, only for display.

Each process reports its own breakers. Losing a report is harmless.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from orchestrator.adapters.redis.client import translated
from orchestrator.telemetry import Signal, SignalType, get_logger
from orchestrator.types import JsonObject, new_id

KEY = "parley:circuits"
FORGOTTEN_AFTER_S = 600.0
"""Lifetime of a report in seconds, because a process that dies cannot withdraw its reports."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CircuitNote:
    """An open or half-open breaker of one process. `since`: Unix time, in seconds."""

    endpoint: str
    model: str
    state: str
    since: float


class RedisCircuits:
    """A Redis hash in which processes report their open and half-open breakers."""

    def __init__(self, redis: Redis, clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._clock = clock
        self._process = new_id("process")
        self._writing: set[asyncio.Task[None]] = set()
        self._in_order = (
            asyncio.Lock()
        )  # without this lock, two connections could write an earlier change last

    def note(self, signal: Signal) -> None:
        """Report a breaker's change in the background."""
        if signal.type is not SignalType.BREAKER:
            return
        seen = signal.payload
        note = CircuitNote(seen["endpoint"], seen["model"], seen["state"], self._clock())
        task = asyncio.get_running_loop().create_task(self._write(note))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def read(self) -> list[CircuitNote]:
        """Return the open and half-open breakers of all processes. Raises Unavailable."""
        with translated("Redis is not responding; try again later."):
            found = await self._redis.hgetall(KEY)
        notes = [CircuitNote(**orjson.loads(value)) for value in found.values()]
        oldest = self._clock() - FORGOTTEN_AFTER_S
        young = [note for note in notes if note.since >= oldest]
        return sorted(young, key=lambda note: (note.endpoint, note.model))

    async def describe(self) -> list[JsonObject]:
        """Return the open and half-open breakers as JSON. Raises Unavailable."""
        return [asdict(note) for note in await self.read()]

    async def settled(self) -> None:
        """Wait until all pending reports reach Redis."""
        await asyncio.gather(*self._writing)

    async def _write(self, note: CircuitNote) -> None:
        name = f"{self._process}|{note.endpoint}|{note.model}"
        try:
            async with self._in_order, self._redis.pipeline(transaction=True) as pipeline:
                if note.state == "closed":
                    pipeline.hdel(KEY, name)
                else:
                    pipeline.hset(KEY, name, orjson.dumps(asdict(note)))
                pipeline.expire(KEY, int(FORGOTTEN_AFTER_S))
                await pipeline.execute()
        except RedisError as error:
            _log.warning("Could not publish a breaker's change.", model=note.model, error=error)
