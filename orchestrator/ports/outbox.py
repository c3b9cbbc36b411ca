"""The outbox: messages stored with a commit until they are acknowledged (RT-4)."""

from dataclasses import dataclass
from typing import Protocol

from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A message to send. `id` stays the same when the message is sent again, so receivers can deduplicate."""

    id: int
    tenant_id: TenantId
    session_id: SessionId
    turn_id: TurnId | None
    kind: str
    payload: JsonObject


class Outbox(Protocol):
    """The outbox. Every method can raise Unavailable."""

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        """Return messages that were never sent or are overdue for acknowledgment, oldest first.

        Marks them as sent. No message is returned twice within `again_after_s` seconds.
        """
        ...

    async def acknowledge(self, ids: list[int]) -> None:
        """Mark messages as received, so that they are not sent again. Unknown IDs are ignored."""
        ...
