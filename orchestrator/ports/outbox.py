"""The outbox: what commits left to be sent, until it is acknowledged (RT-4)."""

from dataclasses import dataclass
from typing import Protocol

from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """One thing to send. `id` is stable, so that receivers recognise a repetition."""

    id: int
    tenant_id: TenantId
    session_id: SessionId
    turn_id: TurnId | None
    kind: str
    payload: JsonObject


class Outbox(Protocol):
    """Every method raises Unavailable."""

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        """Messages of these kinds never sent, or sent so long ago and not acknowledged, oldest first.

        They are marked as sent now. Two callers do not get the same message within `again_after_s` seconds.
        """
        ...

    async def acknowledge(self, ids: list[int]) -> None:
        """Note that these have arrived: they are not given out again. Unknown numbers do no harm."""
        ...
