"""Rate limits and a cache for one process, used if no shared store is configured or available."""

import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger

MINUTE_S = 60.0
MOST_KEYS = 10_000
MOST_CACHED = 1_000


class InProcessRateLimits:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls: OrderedDict[str, deque[float]] = OrderedDict()

    async def take(self, key: str, *, per_minute: int) -> float:
        now = self._clock()
        calls = self._calls.setdefault(key, deque())
        self._calls.move_to_end(key)
        while len(self._calls) > MOST_KEYS:
            self._calls.popitem(last=False)
        while calls and calls[0] <= now - MINUTE_S:
            calls.popleft()
        if len(calls) < per_minute:
            calls.append(now)
            return 0.0
        return calls[len(calls) - per_minute] + MINUTE_S - now


class InProcessCache:
    """An in-process `ToolCache` of at most `MOST_CACHED` entries, which evicts the oldest entries first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    async def get(self, key: str) -> bytes | None:
        until, value = self._kept.get(key, (0.0, None))
        if value is None or until > self._clock():
            return value
        del self._kept[key]
        return None

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        self._kept.pop(key, None)
        self._kept[key] = (self._clock() + ttl_ms / 1000, value)
        while len(self._kept) > MOST_CACHED:
            self._kept.popitem(last=False)


TRY_AGAIN_AFTER_S = 5.0

T = TypeVar("T")

_log = get_logger(__name__)


class SharedStore:
    """Access to a shared store, with a fallback. `name`, `instead`: the store and the fallback, as logged."""

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead
        self._is_away = False
        self._try_at = 0.0

    async def ask(self, question: Callable[[], Awaitable[T]], otherwise: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `question` or, while the store is unavailable, of `otherwise`."""
        if self._is_away and time.monotonic() < self._try_at:
            return await otherwise()
        try:
            answer = await question()
        except Unavailable as error:
            self._note_failure(error)
            return await otherwise()
        if self._is_away:
            self._is_away = False
            _log.info("A shared store is available again.", store=self._name)
        return answer

    def _note_failure(self, error: Unavailable) -> None:
        if not self._is_away:
            _log.warning(
                "A shared store is unavailable.", store=self._name, instead=self._instead, error=error
            )
        self._is_away = True
        self._try_at = time.monotonic() + TRY_AGAIN_AFTER_S
