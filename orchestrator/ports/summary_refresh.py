"""Summaries and memories that a turn requires (IF-13)."""

from dataclasses import dataclass
from typing import Final, Protocol

from orchestrator.types import SessionId, TenantId

SUMMARY_DUE: Final = "summary_due"
"""The trigger of background flows that summarize a session and learn from it."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The last turn that background flows have processed, and the `summary` up to it."""

    through_turn: int
    summary: str | None = None


class SummaryRefresh(Protocol):
    """Refreshes summaries and memories. Every method raises Unavailable."""

    async def remembered_through(self, tenant_id: TenantId, session_id: SessionId) -> int:
        """Return the last turn that memory has processed; 0 for none."""
        ...

    async def renew(
        self, tenant_id: TenantId, session_id: SessionId, *, memory: bool, key: str, here: bool, wait_s: float
    ) -> Renewed | None:
        """Summarize the session now, and with `memory` remember it; the same `key` starts one run.

        `here`: run it in this process. Returns None if it is not ready within `wait_s` seconds.
        """
        ...
