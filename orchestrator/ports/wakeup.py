"""Wake-ups: hints that a session has work. Lost, late or doubled ones change latency only (RT-1)."""

from typing import Protocol

from orchestrator.types import SessionId


class Wakeup(Protocol):
    """Where hints are left and taken."""

    async def offer(self, *session_ids: SessionId, nobody_came: bool = False) -> bool:
        """Say that sessions have work; never raises for a store or broker that is down.

        `nobody_came`: wake somebody all the same, since those who count as awake may be dead.

        False: the hint could not be left; the reconciler will find the work.
        """
        ...

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """Up to `limit` offered sessions, waiting up to `timeout_s` for the first.

        Who takes counts as awake: until it retires or falls silent no other is woken in its place.

        Raises:
            Unavailable: the store does not answer.
        """
        ...

    async def retire(self, *, force: bool = False) -> bool:
        """Stop counting as awake. False: a session was offered meanwhile, so take again (never with
        `force`).
        """
        ...
