"""Turns from the outside: submit, operate, follow, read, decide, comment (RT-1, RT-5, RT-15)."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.event import Event
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.turns.subscription import Subscription
from orchestrator.turns.turn import Receipt, Submission, TurnRecord, TurnStatus
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


class Inbox(Protocol):
    """Turns for submitters. Every method raises Unavailable."""

    async def submit(self, submission: Submission) -> Receipt:
        """Accept a turn, or return the earlier one with the same idempotency key.

        Raises:
            NotFound: the session doesn't exist (and `create_session` is not set).
            SessionClosed: the session is closed.
            SessionBusy: a turn is unfinished and the rule is `reject`.
            InboxFull: the session's or the total limit is reached; nothing was stored.
            Refused: another turn has this `sequence`.
        """
        ...

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Return a turn. Raises NotFound."""
        ...

    async def submitted_as(
        self, tenant_id: TenantId, idempotency_key: str, session_id: SessionId | None = None
    ) -> list[TurnRecord]:
        """Return up to two turns with this key: a session has at most one, but other sessions may have it too."""
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
        """Return turns, newest first; `before`: only those with a lower `seq`."""
        ...

    async def cancel(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        """Cancel a queued turn immediately, or ask a running one to stop. Finished turns stay unchanged."""
        ...

    async def retry(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        """Requeue a quarantined turn at the end of its session's queue (new seq); `signed` is stored as an event.

        Raises Refused if it is not quarantined, or the session is not at the order's epoch.
        """
        ...

    async def drop(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        """Cancel a quarantined or queued turn permanently; otherwise like `retry`."""
        ...


class LiveEvents(Protocol):
    """Live event hints. Only the streamed text of a running turn is stored.

    A streaming turn publishes tokens, ``Event(session_id, "token", turn_id, {"text": piece, "offset":
    characters before it})``, the first with offset 0 and each continuing the last. Offset 0 starts over, for
    example after a crash. The text is deleted with the turn's ``answer`` or ``failed``.
    """

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        """Publish to listeners in one round trip; an empty list makes them read the log.

        Tokens of one call belong to one turn and are contiguous. Never raises if the store is unavailable:
        listeners catch up from the log.
        """
        ...

    def listen(
        self, session_id: SessionId, *, with_streamed: bool = False
    ) -> AbstractAsyncContextManager[Subscription]:
        """Listen from the moment the context is entered.

        `with_streamed`: while a turn is streaming, start with one token with offset 0 and all text so far,
        and again after lost pieces.
        """
        ...


class EventLog(Protocol):
    """Sessions' event logs, numbered from 1 without gaps. Every method raises Unavailable."""

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        """Return durable events with numbers above `after`, in order."""
        ...

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        """Return the number of each session's last event, or 0 for none. Unknown sessions are omitted."""
        ...


class Approvals(Protocol):
    """Approvals for operators (PX-17). Every method raises Unavailable."""

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        """Return approvals, newest first; expired ones have that status."""
        ...

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        """Return an approval. Raises NotFound."""
        ...

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        """Grant or deny a pending approval, once; repeating the decision returns the first one.

        Raises:
            NotFound: the approval doesn't exist.
            Refused: the opposite was decided, it is expired or void, or only an operator can grant it.
        """
        ...


class Archive(Protocol):
    """Past turns' data. Every method raises NotFound for a session that the tenant doesn't have."""

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
        """Return the newest frame of each flow, newest first: the frame's members, with `turn_id` and `at`."""
        ...

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        """Return a frame. Raises NotFound."""
        ...

    async def journal(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        """Return model and tool calls of a session, or of one turn, newest first.

        ``{turn_id, key, kind, status, request_hash, duration_ms, at}``; `at` is the first write. Requests
        and results are omitted, because only the turn may be permitted to see them.
        """
        ...

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        """Return a finished turn's signals (CO-6), in order; each has `source` and `type`.

        Empty before the turn has ended. Raises NotFound for a turn that the tenant doesn't have.
        """
        ...


class Effects(Protocol):
    """A session's side-effect ledger (RT-10)."""

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        """Return a session's side effects, oldest first. Raises NotFound."""
        ...


class FeedbackStore(Protocol):
    """Stores feedback on turns. Every method raises Unavailable."""

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        """Store feedback on a turn, replacing the author's earlier one.

        Raises NotFound.
        """
        ...

    async def list(
        self, tenant_id: TenantId, *, session_id: SessionId | None = None, limit: int = 100
    ) -> list[FeedbackRecord]:
        """Return feedback, newest first; of all sessions by default."""
        ...
