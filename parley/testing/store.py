"""The data that the in-memory adapters share, in place of a database.

The store has no locks, because only one event loop uses it. Tests can control its clock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.errors import NotFound
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.saying import WordFor, unworded
from orchestrator.turns.approval import APPROVAL_TRANSITIONS, ApprovalRecord
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.event import Event
from orchestrator.turns.lease import FrameRecord, OutboxEntry, TurnCommit
from orchestrator.turns.plan import PlanRecord, PlanRevision
from orchestrator.turns.repair import REPAIRED
from orchestrator.turns.step import Step
from orchestrator.turns.turn import (
    FINISHED,
    LONGEST_TITLE,
    IfBusy,
    TurnInput,
    TurnRecord,
    TurnStatus,
    require_transition,
    session_in_use,
    unanswered,
)
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId, new_id

_BEGINNING = Epoch(0)


_Record = TypeVar("_Record")


def record_of(kind: type[_Record], row: object, /, **more: Any) -> _Record:
    """Create a record whose fields come from `more` or from the row's attributes of the same names."""
    names = {field.name for field in fields(kind)} - more.keys()  # pyright: ignore[reportArgumentType]
    return kind(**{name: getattr(row, name) for name in names}, **more)


class ManualClock:
    """A clock that only tests advance."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


@dataclass
class KeptPlan:
    """A stored plan and its revisions, each with its turn and time."""

    record: PlanRecord
    turn_id: TurnId
    at: datetime
    revisions: list[tuple[PlanRevision, TurnId, datetime]] = field(
        default_factory=list[tuple[PlanRevision, TurnId, datetime]]
    )


@dataclass
class MemoryTurn:
    turn_id: TurnId
    session_id: SessionId
    tenant_id: TenantId
    seq: int
    input: TurnInput
    accepted_at: datetime
    idempotency_key: str | None = None
    client_sequence: int | None = None
    status: TurnStatus = TurnStatus.QUEUED
    attempts: int = 0
    epoch: Epoch | None = None
    result: JsonObject | None = None
    error: str | None = None
    forget: bool = False
    cancel_requested: bool = False
    interjects: bool = False
    deadline_at: datetime | None = None
    finished_at: datetime | None = None
    started_at: datetime | None = None
    steps: dict[str, Step] = field(default_factory=dict[str, Step])

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    def record(self) -> TurnRecord:
        return record_of(TurnRecord, self)


@dataclass(frozen=True, slots=True)
class Revision:
    """The change to the state at one epoch. `snapshot`: the complete state, or None if only the change is stored."""

    diff: JsonObject
    snapshot: JsonObject | None


@dataclass
class MemorySession:
    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    domain: str
    if_busy: IfBusy
    created_at: datetime
    updated_at: datetime
    timezone: str | None = None
    locale: str | None = None
    closed: bool = False
    epoch: Epoch = _BEGINNING
    state: bytes | None = None
    next_seq: int = 1
    said_seq: int = 0
    lease_owner: int | None = None
    lease_token: int = 0
    lease_until: datetime | None = None
    turns: list[MemoryTurn] = field(default_factory=list[MemoryTurn])
    events: list[Event] = field(default_factory=list[Event])
    utterances: list[JsonObject] = field(default_factory=list[JsonObject])
    revisions: dict[Epoch, Revision] = field(default_factory=dict[Epoch, Revision])
    frames: dict[str, FrameRecord] = field(default_factory=dict[str, FrameRecord])
    framed: dict[str, TurnId] = field(default_factory=dict[str, TurnId])
    """The turn that displayed each flow's frame."""
    plans: dict[str, KeptPlan] = field(default_factory=dict["str", "KeptPlan"])
    parent: SessionId | None = None
    parent_epoch: Epoch | None = None
    root: SessionId | None = None
    """For a fork, the session at the root of its lineage, or else None."""

    def unfinished(self) -> list[MemoryTurn]:
        """Return the unfinished turns in queue order."""
        waiting = [turn for turn in self.turns if not turn.finished]
        return sorted(waiting, key=lambda turn: turn.seq)

    @property
    def title(self) -> str | None:
        said = (
            line["content"] for line in self.utterances if (line["role"], line["form"]) == ("user", "text")
        )
        return next((text[:LONGEST_TITLE] for text in said), None)

    @property
    def pending(self) -> int:
        return len(self.unfinished())

    def state_at(self, epoch: Epoch) -> JsonObject:
        """Return the state at an epoch. Raises NotFound if the session has no such epoch."""
        if epoch not in self.revisions:
            raise NotFound(f"epoch {epoch} of session", self.session_id)
        start = max(e for e, kept in self.revisions.items() if e <= epoch and kept.snapshot is not None)
        diffs = (self.revisions[Epoch(later)].diff for later in range(start + 1, epoch + 1))
        return rebuild(self.revisions[start].snapshot or {}, diffs)

    def may_run(self, turn: MemoryTurn) -> bool:
        """Return True if the turn has no predecessor by client sequence, or its predecessor has ended."""
        if turn.client_sequence is None or turn.client_sequence == 1:
            return True
        return any(
            other.client_sequence == turn.client_sequence - 1 and other.finished for other in self.turns
        )

    def keep_plans(self, turn_id: TurnId, commit: TurnCommit, now: datetime) -> None:
        for record in commit.plans:
            kept = self.plans.setdefault(record.plan_id, KeptPlan(record, turn_id, now))
            kept.record, kept.turn_id, kept.at = record, turn_id, now
        for revision in commit.plan_revisions:
            self.plans[revision.plan_id].revisions.append((revision, turn_id, now))

    def append(self, turn_id: TurnId, *events: Event) -> tuple[Event, ...]:
        """Store events with sequence numbers. Events belong to `turn_id` unless they name another turn."""
        first = len(self.events) + 1
        numbered = tuple(
            replace(event, number=first + place, turn_id=event.turn_id or turn_id)
            for place, event in enumerate(events)
        )
        self.events += numbered
        return numbered


@dataclass
class MemoryStore:
    """An in-memory database.

    `clock`: the time for leases and deadlines. `word`: renders replies to turns that end without an agent.
    """

    clock: Callable[[], datetime] = field(default_factory=ManualClock)
    word: WordFor = unworded
    sessions: dict[SessionId, MemorySession] = field(default_factory=dict[SessionId, MemorySession])
    outbox: list[OutboxMessage] = field(default_factory=list[OutboxMessage])
    outbox_sent: dict[int, datetime | None] = field(default_factory=dict[int, datetime | None])
    """Send times of outbox messages by ID, or None for acknowledged messages."""
    documents: dict[tuple[TenantId, str], dict[str, dict[str, JsonObject]]] = field(
        default_factory=dict[tuple[TenantId, str], dict[str, dict[str, JsonObject]]]
    )
    effects: dict[tuple[SessionId, str], LedgerEntry] = field(
        default_factory=dict[tuple[SessionId, str], LedgerEntry]
    )
    approvals: dict[str, tuple[TenantId, ApprovalRecord]] = field(
        default_factory=dict[str, tuple[TenantId, ApprovalRecord]]
    )
    live_workers: set[int] = field(default_factory=set[int])
    workers_ever: int = 0
    _turns: dict[TurnId, tuple[MemorySession, MemoryTurn]] = field(
        default_factory=dict[TurnId, "tuple[MemorySession, MemoryTurn]"]
    )

    def session(self, tenant_id: TenantId, session_id: SessionId) -> MemorySession:
        """Return a session. Raises NotFound if it doesn't exist or belongs to another tenant."""
        found = self.sessions.get(session_id)
        if found is None or found.tenant_id != tenant_id:
            raise NotFound("session", session_id)
        return found

    def open_session(
        self,
        tenant_id: TenantId,
        domain: str,
        *,
        session_id: SessionId | None = None,
        user_id: UserId | None = None,
        if_busy: IfBusy = IfBusy.UNDERSTAND,
        timezone: str | None = None,
        locale: str | None = None,
    ) -> MemorySession:
        """Create a session, or return the existing session with the ID `session_id`.

        Raises Refused if a session of another tenant or domain has this ID.
        """
        identifier, now = session_id or SessionId(new_id("session")), self.clock()
        made = MemorySession(identifier, tenant_id, user_id, domain, if_busy, now, now)
        of_user = [
            one
            for one in self.sessions.values()
            if user_id and (one.tenant_id, one.user_id) == (tenant_id, user_id)
        ]
        made.timezone = timezone or next((one.timezone for one in reversed(of_user) if one.timezone), None)
        made.locale = locale or next((one.locale for one in reversed(of_user) if one.locale), None)
        session = self.sessions.setdefault(identifier, made)
        if session.tenant_id != tenant_id or session.domain != domain:
            raise session_in_use(identifier)
        return session

    def leave(self, session: MemorySession, turn_id: TurnId, entries: Iterable[OutboxEntry]) -> None:
        """Add a turn's messages to the outbox."""
        for entry in entries:
            self.outbox.append(
                OutboxMessage(
                    id=len(self.outbox) + 1,
                    tenant_id=session.tenant_id,
                    session_id=session.session_id,
                    turn_id=turn_id,
                    kind=entry.kind,
                    payload=entry.payload,
                )
            )

    def turn(self, tenant_id: TenantId, turn_id: TurnId) -> tuple[MemorySession, MemoryTurn]:
        """Return a turn and its session. Raises NotFound if the turn doesn't exist or belongs to another tenant."""
        session, turn = self._turns.get(turn_id, (None, None))
        if session is None or turn is None or turn.tenant_id != tenant_id:
            raise NotFound("turn", turn_id)
        return session, turn

    def sign(self, session: MemorySession, signed: JsonObject) -> None:
        """Add an operator's repair order to the session's event log."""
        event = Event(session.session_id, REPAIRED, None, signed, len(session.events) + 1, at=self.clock())
        session.events += (event,)

    def enter(self, session: MemorySession, turn: MemoryTurn, now: datetime) -> None:
        """Register a new or requeued turn at the end of the session's queue."""
        self._turns[turn.turn_id] = (session, turn)
        session.next_seq += 1
        session.updated_at = now
        before = sum(one is not turn for one in session.unfinished())
        told: JsonObject = {"seq": turn.seq, "position": before}
        session.append(turn.turn_id, Event(session.session_id, "accepted", payload=told))

    def end(
        self,
        session: MemorySession,
        turn: MemoryTurn,
        status: TurnStatus,
        error: str | None,
        *,
        acted: bool = False,
    ) -> None:
        require_transition(turn.status, status)
        result = unanswered(session.epoch, status, partial(self.word, session.domain), acted=acted)
        turn.status, turn.error, turn.result, turn.finished_at = status, error, result, self.clock()
        payload: JsonObject = {"seq": turn.seq, "status": status.value, "reply": result["reply"]}
        session.append(turn.turn_id, Event(turn.session_id, "failed", payload=payload))
        session.updated_at = self.clock()


def keep_approvals(store: MemoryStore, tenant_id: TenantId, commit: TurnCommit) -> None:
    """Store a commit's new approvals, and the new statuses of the approvals that it closes."""
    now = store.clock()
    for record in commit.approvals:
        store.approvals.setdefault(record.approval_id, (tenant_id, replace(record, created_at=now)))
    for closed in commit.closed_approvals:
        tenant, record = store.approvals.get(closed.approval_id, (None, None))
        if tenant == tenant_id and record and closed.status in APPROVAL_TRANSITIONS.get(record.status, ()):
            changed = replace(record, status=closed.status, closed_at=now)
            store.approvals[closed.approval_id] = (tenant_id, changed)
