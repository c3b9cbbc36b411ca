"""Wake-ups: hints that a session has work. Lost, late or duplicate hints only affect latency (RT-1)."""

from typing import Final, Protocol

from orchestrator.types import SessionId, TenantId

OF_ANY_TENANT: Final = TenantId("")
"""Stands for sessions whose tenant the caller doesn't know."""


class Wakeup(Protocol):
    """Publishes and receives hints."""

    async def offer(
        self, *session_ids: SessionId, tenant_id: TenantId = OF_ANY_TENANT, nobody_came: bool = False
    ) -> bool:
        """Announce sessions with work; never raises if a store or broker is unavailable.

        Sessions of different tenants are taken in turn, those of one tenant in the order of their offers.

        `nobody_came`: wake a worker anyway, because those counted as awake may be dead.

        Returns False if the hint could not be published; the reconciler will find the work.
        """
        ...

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """Return up to `limit` offered sessions, waiting up to `timeout_s` for the first.

        The caller counts as awake until it retires or becomes silent, so no other worker is woken in its
        place.

        Raises:
            Unavailable: the store does not respond.
        """
        ...

    async def retire(self, *, force: bool = False) -> bool:
        """Stop counting as awake.

        Returns False if a session was offered meanwhile, so take again (never with `force`).
        """
        ...
