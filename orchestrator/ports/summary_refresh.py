"""Summaries and memories that a turn cannot do without (IF-13)."""

from dataclasses import dataclass
from typing import Final, Protocol

from orchestrator.types import SessionId, TenantId

SUMMARY_DUE: Final = "summary_due"
"""The trigger of the Internal flows that summarise a session and learn from it."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The turn up to which Internal flows have taken a session in; with the `summary` of that."""

    through_turn: int
    summary: str | None = None


class SummaryRefresh(Protocol):
    """Every method raises Unavailable."""

    async def remembered_through(self, tenant_id: TenantId, session_id: SessionId) -> int:
        """The turn up to which memory knows the session; 0: nothing yet."""
        ...

    async def renew(
        self, tenant_id: TenantId, session_id: SessionId, *, memory: bool, key: str, here: bool, wait_s: float
    ) -> Renewed | None:
        """Have the session summarised now, and with `memory` remembered; the same `key` asks once.

        `here`: this process does it itself. None: it was not ready within so many seconds.
        """
        ...
