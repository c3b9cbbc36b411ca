"""The outbox: messages of commits, until they are acknowledged (RT-4)."""

from dataclasses import dataclass
from typing import Protocol

from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A message to send. `id`: stable, so that receivers can deduplicate."""

    id: int
    tenant_id: TenantId
    session_id: SessionId
    turn_id: TurnId | None
    kind: str
    payload: JsonObject


class Outbox(Protocol):
    """The outbox. Every method raises Unavailable."""

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        """Return messages of these kinds that were never sent, or whose acknowledgment is overdue, oldest first.

        Marks them as sent. Two callers never get the same message within `again_after_s` seconds.
        """
        ...

    async def acknowledge(self, ids: list[int]) -> None:
        """Record arrival: these messages are not returned again. Unknown IDs are ignored."""
        ...
