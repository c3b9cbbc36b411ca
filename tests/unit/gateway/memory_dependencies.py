"""The gateway over in-memory ports, for tests of its calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import httpx
from fastapi import FastAPI

from gateway.app import Exposure, create_app
from gateway.auth.authentication import Access
from gateway.dependencies import (
    Dependencies,
    MemoryServices,
    Operations,
    RunServices,
    SessionServices,
    TurnServices,
)
from gateway.frame_pages import FramePages
from gateway.wiring import load_flows
from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.adapters.event_feed import EventFeed, wait_for_turn
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.adapters.postgres.turns.archive import PostgresArchive, PostgresFeedback
from orchestrator.adapters.postgres.turns.search import PostgresTurnSearch
from orchestrator.adapters.postgres.webhooks import PostgresWebhooks
from orchestrator.adapters.task_sender import TaskSender
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.telemetry import drop_signal
from parley.testing.inbox import MemoryInbox
from parley.testing.live import MemoryLiveEvents, MemoryWakeup
from parley.testing.memory import MemoryDocuments, MemoryPreferences, MemoryScratchpad
from parley.testing.scheduled import MemoryScheduledEvents
from parley.testing.store import MemoryStore
from tests.contract.in_memory.approvals import MemoryApprovals
from tests.contract.in_memory.archive import MemoryEffects, MemoryEventLog
from tests.contract.in_memory.sessions import MemorySessions

NOWHERE = "postgresql://127.0.0.1:1/none"
_given = ContextVar[Dependencies]("given")
_idle: defaultdict[Exposure, list[FastAPI]] = defaultdict(list)


async def _nothing_missing() -> dict[str, str]:
    return {}


async def _nothing_off() -> list[str]:
    return []


def make_dependencies(store: MemoryStore, **others: Any) -> Dependencies:
    """Return dependencies over `store`. `others` replace single ones. Tests on real stores cover the rest."""
    domains = DomainRegistry("travel")
    inbox = others.get("inbox") or MemoryInbox(store)
    live = others.pop("live", None) or MemoryLiveEvents()
    context = BusinessContext(MemoryDocuments(), HashingEmbedder())
    parts: dict[str, Any] = {
        "inbox": inbox,
        "sessions": MemorySessions(store),
        "wakeup": MemoryWakeup(),
        "probe": _nothing_missing,
        "runs": PostgresRuns(Database(NOWHERE)),
        "notify_workers": TaskSender("redis://127.0.0.1:1/0").send_runs,
        "record_signal": drop_signal,
        "memory": MemoryServices(context, MemoryPreferences()),
        "access": Access(),
        "flower_url": None,
        "evaluations": None,
        "feedback": PostgresFeedback(Database(NOWHERE)),
    }
    parts |= others
    return Dependencies(
        turns=TurnServices(
            inbox=inbox,
            scheduled=MemoryScheduledEvents(store, inbox),
            wakeup=parts["wakeup"],
            waiter=partial(wait_for_turn, inbox, live),
            search=PostgresTurnSearch(Database(NOWHERE)),
        ),
        sessions=SessionServices(
            store=parts["sessions"],
            domains=domains,
            events=EventFeed(MemoryEventLog(store), live, inbox),
            archive=PostgresArchive(Database(NOWHERE)),
            effects=MemoryEffects(store),
            scratchpad=MemoryScratchpad(),
            pages=FramePages(domains, lambda _: lambda _: {}),
        ),
        runs=RunServices(
            store=parts["runs"],
            catalogue=lambda: load_flows("travel"),
            load=PostgresStatus(Database(NOWHERE)),
            notify_workers=parts["notify_workers"],
        ),
        memory=parts["memory"],
        operations=Operations(
            probe=parts["probe"],
            off=_nothing_off,
            stats=PostgresStatus(Database(NOWHERE)),
            record_signal=parts["record_signal"],
            flower_url=parts["flower_url"],
            evaluations=parts["evaluations"],
        ),
        approvals=MemoryApprovals(store),
        feedback=parts["feedback"],
        webhooks=PostgresWebhooks(Database(NOWHERE)),
        access=parts["access"],
    )


@asynccontextmanager
async def serve(
    dependencies: Dependencies, exposure: Exposure | None = None, *, headers: dict[str, str] | None = None
) -> AsyncIterator[tuple[FastAPI, httpx.AsyncClient]]:
    """Yield a gateway over these dependencies and a client for it. Faults are handled as in production.

    The application is reused, because building its routes takes longer than most tests.
    """
    idle = _idle[exposure or Exposure()]
    app = idle.pop() if idle else create_app(_open_given, exposure)
    routes = list(app.router.routes)
    _given.set(dependencies)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=headers) as http,
    ):
        yield app, http
    app.router.routes[:], app.openapi_schema = routes, None
    idle.append(app)


@asynccontextmanager
async def _open_given() -> AsyncIterator[Dependencies]:
    yield _given.get()
