"""The inbox: where turns are accepted, looked at and operated. Accepted means committed (RT-1, RT-5)."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.turn import Receipt, Submission, TurnRecord, TurnStatus
from orchestrator.types import SessionId, TenantId, TurnId


class Inbox(Protocol):
    """Turns as those who submit them see them. Every method raises Unavailable."""

    async def submit(self, submission: Submission) -> Receipt:
        """Accept one turn, or return the earlier one of the same idempotency key.

        Raises:
            NotFound: no such session (and `create_session` is not set).
            SessionClosed: the session has been closed.
            SessionBusy: a turn is unfinished and the rule is `reject`.
            InboxFull: the session's or the total bound is reached; nothing was stored.
            InvalidInput: `sequence` was used already by another turn.
        """
        ...

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Read one turn. Raises NotFound."""
        ...

    async def turns(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: TurnStatus | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[TurnRecord]:
        """Newest first; with `before` those of a session with a lower `seq`."""
        ...

    async def cancel(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Cancel a queued turn at once, ask a running one to stop. Finished turns stay as they are."""
        ...

    async def retry(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Put a quarantined turn back at the end of its session's queue (new seq). Raises Refused
        when it is not quarantined.
        """
        ...

    async def drop(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Cancel a quarantined or queued turn for good. Raises Refused when it has finished."""
        ...
