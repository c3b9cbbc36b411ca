"""Scheduled events: external events, reminders and results of asynchronous tool calls (RT-31, RT-32).

An event is delivered as a system turn that starts a flow. The event of an asynchronous call resumes a flow; it
is due when the call must be polled or expires, or when its result arrives.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import AwareDatetime, Field

from orchestrator.errors import InboxFull, Refused
from orchestrator.turns.submission import AnyJson, IdempotencyKey, Identifier, RequestBody
from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnKind
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId, as_json, encode_base64url, new_id

EVENT: Final = "event"
"""The action of the system turn that delivers an event."""
RESULT: Final = "tool_result"
"""The event name for a tool call's result, and the action of its turn (RT-32)."""
CALLS: Final = "/v1/calls/"
"""URL path that receives results of asynchronous calls. The signature is the only credential."""
MOST_SCHEDULED: Final = 100
"""Maximum number of undelivered events per session."""
TRY_AGAIN_AFTER_S: Final = 5.0
"""Seconds until the delivery is retried if the session's inbox is full."""


class EventStatus(StrEnum):
    SCHEDULED = "scheduled"
    DELIVERED = "delivered"
    """The event's turn is in the session's inbox."""
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """The session was closed before the event was due."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to schedule.

    Args:
        key: identifies the event within its session.
        not_before: the due time. Default: now.
        set_by: identifies the tool call, step or turn that schedules the event, or None for external callers.
            If the `key` exists, a different `set_by` replaces the event, unless the event already has a
            result. Other requests return the existing event.
    """

    session_id: SessionId
    tenant_id: TenantId
    name: str
    payload: JsonObject
    key: str
    not_before: datetime | None = None
    set_by: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """A stored event.

    `revision`: how often the event was moved, replaced or answered. `turn_id`: the turn that delivers the event,
    or None before the delivery.
    """

    INTERNAL: ClassVar = frozenset({"tenant_id", "revision", "set_by"})
    """Fields that the APIs don't show."""

    event_id: str
    session_id: SessionId
    tenant_id: TenantId
    name: str
    payload: JsonObject
    key: str
    not_before: datetime
    status: EventStatus
    revision: int = 0
    turn_id: TurnId | None = None
    set_by: str | None = None

    def as_json(self) -> JsonObject:
        return as_json(self, without=self.INTERNAL)

    def as_turn(self) -> Submission:
        """Return the turn that delivers the event. All submissions of a revision share an idempotency key."""
        payload = {"event_id": self.event_id, "name": self.name, "payload": self.payload}
        action = {"name": EVENT, "payload": payload}
        if self.name == RESULT:
            told = {name: value for name, value in self.payload.items() if name != _SIGNED_BY}
            action = {"name": RESULT, "payload": {"reference": self.event_id, **told}}
        return Submission(
            self.session_id,
            TurnInput(action=action, form="action", kind=TurnKind.SYSTEM),
            self.tenant_id,
            idempotency_key=f"event:{self.event_id}:{self.revision}",
            if_busy=IfBusy.ENQUEUE,
        )

    @property
    def is_answered(self) -> bool:
        return self.name == RESULT and self.payload.get(_OUTCOME) is not None

    @property
    def signature(self) -> str:
        """Return the signature for the call's callback URL."""
        signed = f"{self.tenant_id}\n{self.event_id}"
        return encode_base64url(hmac.digest(self.payload[_SIGNED_BY].encode(), signed.encode(), "sha256"))

    def answered_with(self, outcome: JsonObject) -> JsonObject | None:
        """Return the payload with the call's result, or None if the payload already has this result.

        Raise Refused if the payload has a different result.
        """
        known = self.payload.get(_OUTCOME)
        if known is None:
            return {**self.payload, _OUTCOME: outcome}
        if known != outcome:
            raise Refused("This call already has a different result; the first result is kept.")
        return None


_SIGNED_BY: Final = "key"
_OUTCOME: Final = "outcome"


def expect_result(
    session_id: SessionId,
    tenant_id: TenantId,
    *,
    call: str,
    tool_id: str,
    fingerprint: str | None,
    due: datetime,
    set_by: str,
) -> NewEvent:
    """Return the event that waits for the result of an asynchronous call.

    Args:
        session_id: the session that makes the call.
        tenant_id: the session's tenant.
        call: the call's idempotency key.
        tool_id: the tool that is called.
        fingerprint: the call's entry in the side-effect ledger, if any.
        due: the time to check on the call if the result has not arrived.
        set_by: the step or turn that makes the call. If that step or turn runs again, the event is kept.
    """
    payload = {
        "call": call,
        "tool_id": tool_id,
        "fingerprint": fingerprint,
        _SIGNED_BY: secrets.token_hex(32),
    }
    return NewEvent(session_id, tenant_id, RESULT, payload, f"{RESULT}:{call}", due, set_by)


def replacing(found: ScheduledEvent, event: NewEvent) -> NewEvent | None:
    """Return the event to store instead of `found`, which has the same key, or None to keep `found`.

    A repeated poll keeps the call's reference and signature. An answered call is never replaced.
    """
    if event.set_by in {None, found.set_by} or found.is_answered:
        return None
    return replace(event, payload=found.payload) if found.name == event.name == RESULT else event


def new_event_id(name: str = EVENT) -> str:
    return new_id("call" if name == RESULT else "event")


class EventRequest(RequestBody):
    """A submitted event: its name, and slot values for the flow that the event starts."""

    name: Identifier
    payload: Annotated[dict[str, AnyJson], Field(max_length=64)] = Field(default_factory=dict[str, Any])
    not_before: AwareDatetime | None = None
    idempotency_key: IdempotencyKey | None = None

    def to_event(self, session_id: SessionId, tenant_id: TenantId, *, key: str | None = None) -> NewEvent:
        """Return the event to schedule. `key`: the event's key if the request has no idempotency key."""
        chosen = self.idempotency_key or key or new_event_id()
        return NewEvent(session_id, tenant_id, self.name, dict(self.payload), chosen, self.not_before)


def require_movable(event: ScheduledEvent) -> ScheduledEvent:
    if event.status is not EventStatus.SCHEDULED:
        raise Refused(
            f"Only a scheduled event can be moved; event {event.event_id!r} is {event.status.value}."
        )
    return event


def too_many_events() -> InboxFull:
    return InboxFull(f"The session already has {MOST_SCHEDULED} scheduled events; cancel some first.")


def require_known_event(name: str, known: Collection[str]) -> None:
    if name not in known:
        hint = f"known events: {', '.join(sorted(known))}" if known else "no flow lists any `events`"
        raise Refused(f"Unknown event {name[:60]!r}; {hint}.")
