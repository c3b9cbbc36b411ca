"""Wake-ups: hints that sessions have turns to run. Lost, late or duplicate hints affect only latency (RT-1)."""

from typing import Final, Protocol

from orchestrator.types import SessionId, TenantId

OF_ANY_TENANT: Final = TenantId("")
"""A placeholder for callers of `offer` that don't know the tenant."""


class Wakeup(Protocol):
    async def offer(
        self, *session_ids: SessionId, tenant_id: TenantId = OF_ANY_TENANT, nobody_came: bool = False
    ) -> bool:
        """Announce that sessions have turns to run, and wake a worker if necessary.

        Tenants are served in rotation, and a tenant's sessions in order. `nobody_came`: True to wake a worker
        in any case, because the workers that count as awake may be dead. Return False if a store or broker is
        unavailable; the reconciler then offers the sessions later.
        """
        ...

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """Return up to `limit` offered sessions. Wait up to `timeout_s` seconds if there are none.

        The caller counts as awake until it retires or stops calling. Awake workers are not woken again.

        Raises:
            Unavailable: the store does not respond.
        """
        ...

    async def retire(self, *, force: bool = False) -> bool:
        """Stop counting the caller as awake, and return True.

        If sessions are waiting, change nothing and return False; the caller should then take them. `force`:
        True to retire even if sessions are waiting.
        """
        ...
