"""A store that all workers share, and what is done while it is away: said once, then without it for a while."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger

TRY_AGAIN_AFTER_S = 5.0

T = TypeVar("T")

_log = get_logger(__name__)


class SharedStore:
    """`name`: as the log calls it. `instead`: what happens without it, as the log says it."""

    def __init__(self, name: str, instead: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._instead = instead
        self._clock = clock
        self._is_away = False
        self._try_at = 0.0

    async def ask(self, question: Callable[[], Awaitable[T]], otherwise: Callable[[], Awaitable[T]]) -> T:
        """Ask the store, or go without it."""
        if self._is_away and self._clock() < self._try_at:
            return await otherwise()
        try:
            answer = await question()
        except Unavailable as error:
            self._note_failure(error)
            return await otherwise()
        if self._is_away:
            self._is_away = False
            _log.info("A shared store is back.", store=self._name)
        return answer

    def _note_failure(self, error: Unavailable) -> None:
        if not self._is_away:
            _log.warning("A shared store is away.", store=self._name, instead=self._instead, error=error)
        self._is_away = True
        self._try_at = self._clock() + TRY_AGAIN_AFTER_S
