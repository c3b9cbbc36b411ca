"""What the routes reach: the ports, bound together once per process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from fastapi import Depends
from starlette.requests import HTTPConnection

from gateway.authentication import Access
from orchestrator.adapters.domains.frame_pages import FramePages
from orchestrator.adapters.event_feed import EventFeed, Leave
from orchestrator.adapters.postgres.load import PostgresLoad
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.memory.business_context import BusinessContext
from orchestrator.ports.memory.preferences import PreferenceStore
from orchestrator.ports.memory.scratchpad import Scratchpad
from orchestrator.ports.runs.records import NewRun, Started
from orchestrator.ports.sessions import Sessions
from orchestrator.ports.turns.approvals import Approvals
from orchestrator.ports.turns.archive import Archive
from orchestrator.ports.turns.effects import Effects
from orchestrator.ports.turns.events import LiveEvents
from orchestrator.ports.turns.feedback import FeedbackStore
from orchestrator.ports.turns.inbox import Inbox
from orchestrator.ports.wakeup import Wakeup
from orchestrator.ports.webhooks import Webhooks
from orchestrator.telemetry import RecordSignal
from orchestrator.turns.access import Caller
from orchestrator.turns.turn import TurnRecord
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId

Waiter = Callable[[TenantId, SessionId, TurnId, float], Awaitable[TurnRecord]]
"""Wait up to so many seconds for a turn to finish; the record as it then is."""


class Domains(Protocol):
    """Which domains sessions may name."""

    def resolve(self, name: str | None) -> str:
        """The domain's name; the default one for None. Raises InvalidInput for an unknown one."""
        ...

    def names(self) -> list[str]:
        """All of them, sorted."""
        ...


class Flows(Protocol):
    """Which Internal flows may be started."""

    def new_run(
        self,
        name: str,
        *,
        inputs: tuple[Json, ...],
        options: JsonObject,
        parameters: JsonObject,
        tenant_id: TenantId,
        session_id: SessionId | None,
    ) -> NewRun:
        """Raises InvalidInput for an unknown one, naming the others."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryDoors:
    """What is remembered beyond a session."""

    context: BusinessContext
    preferences: PreferenceStore


@dataclass(frozen=True, slots=True)
class Doors:
    """`probe` names what is not ready, and why; empty when all is well.

    `circuits` tells of models that workers do not ask at present. `send_runs` wakes a worker for runs
    that were started; it never raises, since workers look for such runs anyway. `flower_url` is where
    people find Flower, for a link.
    """

    inbox: Inbox
    sessions: Sessions
    wakeup: Wakeup
    wait: Waiter
    domains: Domains
    effects: Effects
    approvals: Approvals
    probe: Callable[[], Awaitable[dict[str, str]]]
    circuits: Callable[[], Awaitable[list[JsonObject]]]
    runs: PostgresRuns
    status: PostgresStatus
    load: PostgresLoad
    flows: Flows
    send_runs: Callable[[Started], Awaitable[None]]
    events: EventFeed
    live: LiveEvents
    archive: Archive
    feedback: FeedbackStore
    scratchpad: Scratchpad
    pages: FramePages
    record_signal: RecordSignal
    memory: MemoryDoors
    access: Access = field(default_factory=Access)
    webhooks: Webhooks | None = None
    flower_url: str | None = None


def doors_of(connection: HTTPConnection) -> Doors:
    return connection.app.state.doors


def _caller(connection: HTTPConnection) -> Caller:
    """Who asks; `gateway.admission` has found it out before any route runs."""
    return connection.state.caller


def _tenant(connection: HTTPConnection) -> TenantId:
    return _caller(connection).tenant_id


def leave_of(doors: Doors, caller: Caller) -> Leave:
    """To listen for as long as the caller would be let in."""
    return Leave(lambda: doors.access.holds(caller), doors.access.recheck_every_s)


TheDoors = Annotated[Doors, Depends(doors_of)]
TheCaller = Annotated[Caller, Depends(_caller)]
TheTenant = Annotated[TenantId, Depends(_tenant)]
