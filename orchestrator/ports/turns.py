"""Ports for clients and operators: turns, events, approvals, side effects and frames (RT-1, RT-5, RT-15)."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.event import Event
from orchestrator.turns.subscription import Subscription
from orchestrator.turns.turn import Receipt, Submission, TurnRecord, TurnStatus
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


class Inbox(Protocol):
    """The inbox for turns. Every method can raise Unavailable."""

    async def submit(self, submission: Submission) -> Receipt:
        """Accept a turn, or return the receipt of the turn with the same idempotency key.

        Raises:
            NotFound: the session doesn't exist and `create_session` is not set.
            SessionClosed: the session is closed.
            SessionBusy: a turn is unfinished and the rule is `reject`.
            InboxFull: the session or the system has too many unfinished turns; nothing was stored.
            Refused: another turn has this `sequence`.
        """
        ...

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Return a turn. Raises NotFound."""
        ...

    async def submitted_as(
        self, tenant_id: TenantId, idempotency_key: str, session_id: SessionId | None = None
    ) -> list[TurnRecord]:
        """Return up to two turns with this key. Keys are unique only within a session."""
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
        """Return turns, newest first. `before`: only turns with a lower `seq`."""
        ...

    async def cancel(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Cancel a queued turn immediately, or ask a running turn to stop. Finished turns stay unchanged."""
        ...

    async def retry(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        """Requeue a quarantined turn with a new `seq`, at the end of its session's queue.

        `signed`: the operator's order, stored as an event. Raises Refused if the turn is not quarantined or
        the session is not at the order's epoch.
        """
        ...

    async def drop(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        """Cancel a quarantined or queued turn permanently. `signed`: as in `retry`.

        Raises Refused if the turn has another status or the session is not at the order's epoch.
        """
        ...


class LiveEvents(Protocol):
    """Event delivery to live listeners. Only the streamed text of running turns is stored.

    A streaming turn publishes ``Event(session_id, "token", turn_id, {"text": piece, "offset": offset})``. The
    offset is the number of characters before the piece. Offset 0 restarts the text, for example after a
    crash. The turn's ``answer`` or ``failed`` event deletes its text.
    """

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        """Publish events in one round trip. If `events` is empty, tell listeners to read the log.

        All tokens in a call must be contiguous and from the same turn. If the store is unavailable, the
        method returns normally and listeners catch up from the log.
        """
        ...

    def listen(
        self, session_id: SessionId, *, with_streamed: bool = False
    ) -> AbstractAsyncContextManager[Subscription]:
        """Return a context manager that listens from the moment it is entered.

        `with_streamed`: True to start with a token event that contains all text streamed so far, and to send
        such an event again after events were lost.
        """
        ...


class EventLog(Protocol):
    """Event logs, numbered from 1 without gaps in each session. Every method can raise Unavailable."""

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        """Return events with numbers above `after`, in order."""
        ...

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        """Return each session's last event number, or 0 if the session has no events.

        Unknown sessions are omitted.
        """
        ...


class Approvals(Protocol):
    """Approvals of tool calls (PX-17). Every method can raise Unavailable."""

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        """Return approvals, newest first. Default: approvals from all sessions, with any status."""
        ...

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        """Return an approval. Raises NotFound."""
        ...

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        """Grant or deny a pending approval. Repeating the decision has no effect.

        Raises:
            NotFound: the approval doesn't exist.
            Refused: the approval has the opposite decision, has expired, is void, or requires an operator.
        """
        ...


class Frames(Protocol):
    """Display frames of past turns."""

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        """Return a frame. Raises NotFound if the tenant has no such session, or the session has no such frame."""
        ...


class Effects(Protocol):
    """Read access to side-effect ledgers (RT-10)."""

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        """Return a session's side effects, least recently changed first. Raises NotFound."""
        ...
