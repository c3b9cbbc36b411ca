"""Route dependencies: groups of ports, bound once per process, and the request's caller."""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from gateway.auth.authentication import Access
from gateway.auth.authorization import Owners
from gateway.frame_pages import FramePages
from internal_flows.catalogue import Catalogue
from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.adapters.event_feed import EventFeed, Leave, Waiter
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.adapters.postgres.turns.archive import PostgresArchive, PostgresFeedback
from orchestrator.adapters.postgres.turns.search import PostgresTurnSearch
from orchestrator.adapters.postgres.webhooks import PostgresWebhooks
from orchestrator.memory.business_context import BusinessContext
from orchestrator.ports.memory.preferences import PreferenceStore
from orchestrator.ports.memory.scratchpad import Scratchpad
from orchestrator.ports.runs.records import NewRun, Started
from orchestrator.ports.sessions import Sessions
from orchestrator.ports.turns import Approvals, Effects
from orchestrator.runtime.submit import Submitter
from orchestrator.telemetry import RecordSignal
from orchestrator.turns.access import Caller
from orchestrator.turns.turn import TurnRecord
from orchestrator.types import SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnServices(Submitter):
    """Ports for turns. `longest_s`: maximum duration of any wait, in seconds."""

    waiter: Waiter
    search: PostgresTurnSearch
    longest_s: float = math.inf

    async def wait(
        self, tenant_id: TenantId, session_id: SessionId, turn_id: TurnId, wait_s: float
    ) -> TurnRecord:
        """Return the turn once it has finished, or unfinished after `wait_s` seconds, limited by `longest_s`."""
        return await self.waiter(tenant_id, session_id, turn_id, min(wait_s, self.longest_s))


@dataclass(frozen=True, slots=True)
class SessionServices:
    store: Sessions
    domains: DomainRegistry
    events: EventFeed
    archive: PostgresArchive
    effects: Effects
    scratchpad: Scratchpad
    pages: FramePages


@dataclass(frozen=True, slots=True)
class RunServices:
    """Ports for background runs.

    `catalogue`: returns the flows that clients can start, which workers run. `notify_workers`: wakes workers. It
    never raises, because workers also poll for started runs.
    """

    store: PostgresRuns
    catalogue: Callable[[], Catalogue]
    load: PostgresStatus
    notify_workers: Callable[[Started], Awaitable[None]]

    async def start(self, runs: tuple[NewRun, ...]) -> Started:
        started = await self.store.start(runs)
        await self.notify_workers(started)
        return started


@dataclass(frozen=True, slots=True)
class MemoryServices:
    context: BusinessContext
    preferences: PreferenceStore


@dataclass(frozen=True, slots=True)
class Operations:
    """Ports for health, metrics, signals and reports.

    `probe`: returns the reason for each unavailable store, by store name. `off`: returns the problems that
    disable background flows or jobs. `evaluations`: folder with the results of `parley eval` and
    `parley replay`, or None if there is none.
    """

    probe: Callable[[], Awaitable[dict[str, str]]]
    off: Callable[[], Awaitable[list[str]]]
    stats: PostgresStatus
    record_signal: RecordSignal
    flower_url: str | None = None
    evaluations: Path | None = None


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All dependencies. Routes declare the parts that they need, such as `TheTurns` and `TheSessions`."""

    turns: TurnServices
    sessions: SessionServices
    runs: RunServices
    memory: MemoryServices
    operations: Operations
    approvals: Approvals
    feedback: PostgresFeedback
    webhooks: PostgresWebhooks
    access: Access

    @property
    def owners(self) -> Owners:
        return Owners(self.sessions.store, self.turns.inbox, self.approvals, self.runs.store)


def dependencies_of(connection: HTTPConnection) -> Dependencies:
    return connection.app.state.dependencies


async def _nothing() -> None:
    """Do nothing, for connections that have nothing to renew."""


def leave_of(
    access: Access,
    caller: Caller,
    longest_s: float = math.inf,
    renew: Callable[[], Awaitable[None]] = _nothing,
) -> Leave:
    """Return permission to receive events while the caller's credentials are valid.

    `longest_s`: maximum duration of the permission, in seconds. `renew`: called after each successful check.
    """
    until = time.monotonic() + longest_s

    async def holds() -> bool:
        if time.monotonic() >= until or not await access.holds(caller):
            return False
        await renew()
        return True

    return Leave(holds, min(access.recheck_every_s, longest_s))


def _part(name: str) -> Any:
    def get_part(connection: HTTPConnection) -> Any:
        return getattr(dependencies_of(connection), name)

    return Depends(get_part)


def _caller(connection: HTTPConnection) -> Caller:
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
TheFeedback = Annotated[PostgresFeedback, _part("feedback")]
TheAccess = Annotated[Access, _part("access")]
TheWebhooks = Annotated[PostgresWebhooks, _part("webhooks")]
TheCaller = Annotated[Caller, Depends(_caller)]
TheTenant = Annotated[TenantId, Depends(_tenant)]
