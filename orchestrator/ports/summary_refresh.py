"""On-demand updates of a session's summary and its user's memories, requested by turns (IF-13)."""

from dataclasses import dataclass
from typing import Final, Protocol

from orchestrator.types import SessionId, TenantId

SUMMARY_DUE: Final = "summary_due"
"""The trigger that starts the background flows for summarizing a session and learning from it."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The result of refreshing a session's summary.

    `through_turn`: the number of the last summarized turn. `summary`: the text, or None if it is not in the
    scratchpad.
    """

    through_turn: int
    summary: str | None = None


class SummaryRefresh(Protocol):
    """A service that updates summaries and memories on demand. Every method can raise Unavailable."""

    async def remembered_through(self, tenant_id: TenantId, session_id: SessionId) -> int:
        """Return the number of the session's last turn that the user's memories cover, or 0."""
        ...

    async def renew(
        self, tenant_id: TenantId, session_id: SessionId, *, memory: bool, key: str, here: bool, wait_s: float
    ) -> Renewed | None:
        """Summarize the session and return the result, or None if it is not ready within `wait_s` seconds.

        Calls with the same `key` share one run. `memory`: True to update the user's memories too. `here`: True
        to run in this process.
        """
        ...
