"""Turns as seen from outside: submit, operate, follow and read them, decide and comment (RT-1, RT-5, RT-15)."""

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
    """Turns as those who submit them see them. Every method raises Unavailable."""

    async def submit(self, submission: Submission) -> Receipt:
        """Accept one turn, or return the earlier one of the same idempotency key.

        Raises:
            NotFound: no such session (and `create_session` is not set).
            SessionClosed: the session has been closed.
            SessionBusy: a turn is unfinished and the rule is `reject`.
            InboxFull: the session's or the total bound is reached; nothing was stored.
            Refused: `sequence` was used already by another turn.
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

    async def retry(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        """Put a quarantined turn back at the end of its session's queue (new seq); `signed` is kept as an event.

        Raises Refused when it is not quarantined, or the session is not at the order's epoch.
        """
        ...

    async def drop(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        """Cancel a quarantined or queued turn for good; otherwise as `retry`."""
        ...


class LiveEvents(Protocol):
    """Hints of what happens. Nothing is kept but the text that a running turn has streamed so far.

    A turn that streams its answer publishes tokens, ``Event(session_id, "token", turn_id, {"text": piece,
    "offset": characters before it})``, the first with offset 0 and each going on where the last one
    ended. Offset 0 begins anew, as after a crash. The text is forgotten with the turn's ``answer`` or
    ``failed``.
    """

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        """Reach the listeners in one round trip; no events at all make them look at the log.

        Tokens of one call belong to one turn and follow each other. Never raises for a store that is down:
        listeners catch up from the log.
        """
        ...

    def listen(
        self, session_id: SessionId, *, with_streamed: bool = False
    ) -> AbstractAsyncContextManager[Subscription]:
        """Listen from the moment the context is entered.

        `with_streamed`: when a turn is streaming, hear first one token with offset 0 and all text so far,
        then the tokens after it; and so again when pieces were lost.
        """
        ...


class EventLog(Protocol):
    """The log of what happened in sessions, numbered without a hole from 1 on. Every method raises Unavailable."""

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        """Durable events with numbers above `after`, in order."""
        ...

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        """The number of each session's last event; 0 while it has none. Unknown sessions are left out."""
        ...


class Approvals(Protocol):
    """Questions for approval as operators see them (PX-17). Every method raises Unavailable."""

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        """Newest first; what has expired says so."""
        ...

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        """Raises NotFound."""
        ...

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        """Grant or deny a pending approval, once; the same decision again gives the first one.

        Raises:
            NotFound: there is no such approval.
            Refused: it was decided otherwise, has expired, or is void; or only an operator may grant it.
        """
        ...


class Archive(Protocol):
    """Every method raises NotFound for a session that this tenant does not have."""

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
        """The newest frame of each flow, newest first: the frame's members, with `turn_id` and `at`."""
        ...

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        """One of them. Raises NotFound."""
        ...

    async def journal(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        """Model and tool calls of a session's turns, or of one turn, newest first.

        ``{turn_id, key, kind, status, request_hash, duration_ms, at}``; `at` is when it was first written. What was
        asked and answered is left out: it may hold what only the turn may see.
        """
        ...

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        """List what a finished turn signalled (CO-6), in order; each has `source` and `type`.

        Empty before the turn has ended. Raises NotFound for a turn that this tenant does not have.
        """
        ...


class Effects(Protocol):
    """The ledger of a session: what tools changed outside (RT-10)."""

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        """List what tools did for a session, oldest first. Raises NotFound for a session that is not there."""
        ...


class FeedbackStore(Protocol):
    """Keeps what people think of turns. Every method raises Unavailable."""

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        """Keep what somebody thinks of a turn; the same author's later word replaces the earlier one.

        Raises NotFound.
        """
        ...

    async def list(
        self, tenant_id: TenantId, *, session_id: SessionId | None = None, limit: int = 100
    ) -> list[FeedbackRecord]:
        """Newest first; of all sessions when none is named."""
        ...
