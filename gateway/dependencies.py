"""The dependencies of the routes: the ports in groups, bound once per process, and the caller of a request."""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from gateway.auth.authentication import Access
from gateway.auth.authorisation import Owners
from gateway.flows import KnownFlows
from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.adapters.domains.frame_pages import FramePages
from orchestrator.adapters.event_feed import EventFeed, Leave
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.status import PostgresLoad, PostgresStatus
from orchestrator.adapters.postgres.webhooks import PostgresWebhooks
from orchestrator.errors import Unavailable
from orchestrator.memory.business_context import BusinessContext
from orchestrator.ports.memory.preferences import PreferenceStore
from orchestrator.ports.memory.scratchpad import Scratchpad
from orchestrator.ports.runs.records import NewRun, Started
from orchestrator.ports.sessions import Sessions
from orchestrator.ports.turns import Approvals, Archive, Effects, FeedbackStore, Inbox
from orchestrator.ports.wakeup import Wakeup
from orchestrator.telemetry import RecordSignal
from orchestrator.turns.access import Caller
from orchestrator.turns.turn import FINISHED, Receipt, Submission, TurnRecord
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

# Wait up to so many seconds for a turn to finish; the record as it then is.
Waiter = Callable[[TenantId, SessionId, TurnId, float], Awaitable[TurnRecord]]


@dataclass(frozen=True, slots=True)
class TurnServices:
    """The inbox, and the workers that empty it. `longest_s`: of a wait, whatever was asked for."""

    inbox: Inbox
    wakeup: Wakeup
    waiter: Waiter
    longest_s: float = math.inf

    async def wait(
        self, tenant_id: TenantId, session_id: SessionId, turn_id: TurnId, wait_s: float
    ) -> TurnRecord:
        """The turn once it has finished, or as it is when the time is over."""
        return await self.waiter(tenant_id, session_id, turn_id, min(wait_s, self.longest_s))

    async def submit(self, submission: Submission) -> Receipt:
        """Accept a turn, and wake a worker unless it is the repetition of one that has finished."""
        receipt = await self.inbox.submit(submission)
        if receipt.status not in FINISHED:
            await self.wakeup.offer(submission.session_id)
        return receipt


@dataclass(frozen=True, slots=True)
class SessionServices:
    """Sessions, and what their turns have left behind."""

    store: Sessions
    domains: DomainRegistry
    events: EventFeed
    archive: Archive
    effects: Effects
    scratchpad: Scratchpad
    pages: FramePages


@dataclass(frozen=True, slots=True)
class RunServices:
    """Runs of Internal flows. `notify_workers` never raises: workers look for started runs anyway."""

    store: PostgresRuns
    flows: KnownFlows
    load: PostgresLoad
    notify_workers: Callable[[Started], Awaitable[None]]

    async def start(self, runs: tuple[NewRun, ...]) -> Started:
        """Store runs and wake a worker for those that may begin."""
        started = await self.store.start(runs)
        await self.notify_workers(started)
        return started


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """Memory beyond a session: documents and preferences."""

    context: BusinessContext
    preferences: PreferenceStore


@dataclass(frozen=True, slots=True)
class Operations:
    """The health and the figures of the system.

    `probe` names what is not ready, and why; empty when all is well. `circuits` lists models that workers
    do not ask at present, `off` says why Internal flows or jobs are off. `flower_url` is where people find
    Flower, for a link. `evaluations` is the folder in which `parley eval` and `parley replay` keep their runs.
    """

    probe: Callable[[], Awaitable[dict[str, str]]]
    circuits: Callable[[], Awaitable[list[JsonObject]]]
    off: Callable[[], Awaitable[list[str]]]
    stats: PostgresStatus
    record_signal: RecordSignal
    flower_url: str | None = None
    evaluations: Path | None = None


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All of them; a route takes the groups that it uses by `TheTurns`, `TheSessions` …"""

    turns: TurnServices
    sessions: SessionServices
    runs: RunServices
    memory: MemoryServices
    operations: Operations
    approvals: Approvals
    feedback: FeedbackStore
    webhooks: PostgresWebhooks | None = None
    access: Access = field(default_factory=Access)

    @property
    def owners(self) -> Owners:
        return Owners(self.sessions.store, self.turns.inbox, self.approvals, self.runs.store)


def dependencies_of(connection: HTTPConnection) -> Dependencies:
    return connection.app.state.dependencies


def leave_of(access: Access, caller: Caller, longest_s: float = math.inf) -> Leave:
    """Permission to listen for as long as the caller's credentials hold, and no longer than `longest_s`."""
    until = time.monotonic() + longest_s

    async def holds() -> bool:
        return time.monotonic() < until and await access.holds(caller)

    return Leave(holds, min(access.recheck_every_s, longest_s))


def _part(name: str) -> Any:
    def get_part(connection: HTTPConnection) -> Any:
        return getattr(dependencies_of(connection), name)

    return Depends(get_part)


def _webhooks(connection: HTTPConnection) -> PostgresWebhooks:
    webhooks = dependencies_of(connection).webhooks
    if webhooks is None:
        raise Unavailable("This gateway keeps no webhooks.")
    return webhooks


def _caller(connection: HTTPConnection) -> Caller:
    """The caller, identified by `gateway.guard` before any route runs."""
    return connection.state.caller


def _tenant(connection: HTTPConnection) -> TenantId:
    return _caller(connection).tenant_id


TheDependencies = Annotated[Dependencies, Depends(dependencies_of)]
TheTurns = Annotated[TurnServices, _part("turns")]
TheSessions = Annotated[SessionServices, _part("sessions")]
TheRuns = Annotated[RunServices, _part("runs")]
TheMemory = Annotated[MemoryServices, _part("memory")]
TheOperations = Annotated[Operations, _part("operations")]
TheApprovals = Annotated[Approvals, _part("approvals")]
TheFeedback = Annotated[FeedbackStore, _part("feedback")]
TheAccess = Annotated[Access, _part("access")]
TheWebhooks = Annotated[PostgresWebhooks, Depends(_webhooks)]
TheCaller = Annotated[Caller, Depends(_caller)]
TheTenant = Annotated[TenantId, Depends(_tenant)]
