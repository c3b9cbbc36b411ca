"""Wake-ups: hints that a session has work. Lost, late or doubled ones change latency only (RT-1)."""

from __future__ import annotations

from typing import Protocol

from orchestrator.types import SessionId


class Wakeup(Protocol):
    async def offer(self, session_id: SessionId) -> None:
        """Say that the session has work; never raises for a store or broker that is down."""
        ...

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """Up to `limit` offered sessions, waiting up to `timeout_s` for the first."""
        ...
