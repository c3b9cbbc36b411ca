"""The outbox: messages that are stored with a commit and sent repeatedly until they are acknowledged (RT-4)."""

from dataclasses import dataclass
from typing import Protocol

from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A message to send. `id`: the same each time the message is sent, so that receivers can deduplicate."""

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
        """Return unacknowledged messages of these kinds, oldest first, and mark them as sent.

        No message is returned twice within `again_after_s` seconds.
        """
        ...

    async def acknowledge(self, ids: list[int]) -> None:
        """Mark messages as received, so that they are not sent again. Unknown IDs are ignored."""
        ...
