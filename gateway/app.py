"""The gateway application: routes, limits and errors around the ports."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware

from gateway import openapi, problems
from gateway.admission import admit
from gateway.authentication import Access, Rates, TokenReader
from gateway.binding import requires_callers
from gateway.doors import Doors, Flows, MemoryDoors
from gateway.flows import KnownFlows
from gateway.headers import LOOPBACK_HOSTS, OwnHosts, SafeHeaders
from gateway.inspector import page as inspector
from gateway.limits import BodyLimit
from gateway.measuring import Measured
from gateway.routes import (
    access,
    approvals,
    documents,
    events,
    feedback,
    health,
    looking,
    metrics,
    preferences,
    runs,
    sessions,
    socket,
    turns,
    webhooks,
)
from gateway.tokens import read_tokens
from orchestrator.adapters.domains.frame_pages import FramePages
from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.adapters.postgres.turns.archive import PostgresArchive
from orchestrator.adapters.postgres.turns.feedback import PostgresFeedback
from orchestrator.bootstrap import Ports, make_services, open_ports
from orchestrator.settings import Settings, load_settings
from orchestrator.telemetry import log_signal
from orchestrator.telemetry.traces import set_up_tracing, shut_down_tracing

PARTS = (
    sessions,
    turns,
    looking,
    feedback,
    events,
    socket,
    approvals,
    runs,
    documents,
    preferences,
    webhooks,
    access,
    health,
    metrics,
)
"""In the order in which the documentation shows them."""

OpenDoors = Callable[[], AbstractAsyncContextManager[Doors]]


@dataclass(frozen=True, slots=True)
class Front:
    """What the gateway is to the outside. `hosts`: the only names it answers to; None: any."""

    cors_origins: tuple[str, ...] = ()
    docs: bool = True
    hosts: frozenset[str] | None = None


@asynccontextmanager
async def open_doors(
    settings: Settings, tokens: TokenReader | None = None, flows: Flows | None = None
) -> AsyncGenerator[Doors]:
    """The ports over the real stores; they need not answer yet. `flows`: other ones than the domain's."""
    async with open_ports(settings, tenant_bound=settings.row_security) as ports:
        yield Doors(
            access=_access(settings, ports, tokens),
            webhooks=ports.webhooks,
            inbox=ports.inbox,
            sessions=ports.sessions,
            wakeup=ports.wakeup,
            wait=ports.waiter.finished,
            domains=ports.domains,
            effects=ports.effects,
            approvals=ports.approvals,
            probe=ports.probe,
            circuits=ports.circuits.describe,
            runs=ports.runs,
            status=PostgresStatus(ports.database),
            load=ports.load,
            flows=flows or KnownFlows(settings.domain),
            send_runs=ports.messages.send_runs,
            flower_url=settings.flower_url,
            events=ports.events,
            live=ports.live,
            archive=PostgresArchive(ports.database),
            feedback=PostgresFeedback(ports.database),
            scratchpad=ports.scratchpad,
            pages=FramePages(ports.domains, lambda loaded: make_services(loaded, ports)),
            record_signal=log_signal,
            memory=MemoryDoors(ports.context, ports.preferences),
        )


def _access(settings: Settings, ports: Ports, tokens: TokenReader | None) -> Access:
    return Access(
        required=requires_callers(settings),
        keys=ports.keys,
        tokens=tokens,
        tickets=ports.tickets,
        limits=ports.request_limits,
        rates=Rates(settings.caller_rate, settings.tenant_rate, settings.session_rate),
        open_metrics=settings.open_metrics,
    )


def create_app(open_doors: OpenDoors, front: Front | None = None) -> FastAPI:
    """The application; `open_doors` is entered when it starts and left when it stops."""
    front = front or Front()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_doors() as doors:
            app.state.doors = doors
            yield
        shut_down_tracing()

    app = FastAPI(
        title="Parley",
        version="1",
        summary="A distributed runtime for task-oriented conversational agents",
        lifespan=lifespan,
        redoc_url=None,
        docs_url="/docs" if front.docs else None,
        openapi_url="/openapi.json" if front.docs else None,
        dependencies=[Depends(admit)],
        generate_unique_id_function=openapi.operation_id,
    )
    problems.install(app)
    _trace(app)
    _add_middleware(app, front)
    for part in PARTS:
        app.include_router(part.router)
    inspector.install(app)
    app.openapi = lambda: openapi.describe(app)
    return app


def _trace(app: FastAPI) -> None:
    """Requests become spans, continuing the caller's trace, where traces are sent anywhere."""
    if set_up_tracing("gateway", os.environ):
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor  # noqa: PLC0415  # seldom needed

        FastAPIInstrumentor.instrument_app(app, excluded_urls="health,metrics")


def _add_middleware(app: FastAPI, front: Front) -> None:
    """What is added last sees a request first."""
    app.add_middleware(BodyLimit)
    if front.hosts is not None:
        app.add_middleware(OwnHosts, hosts=front.hosts, origins=front.cors_origins)
    app.add_middleware(SafeHeaders, shared=bool(front.cors_origins))
    app.add_middleware(Measured)
    if front.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=front.cors_origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Retry-After"],
        )


def production_app(host: str = "127.0.0.1") -> FastAPI:
    """The application over the stores that the environment names. Raises ConfigurationError."""
    settings = load_settings()
    tokens = read_tokens(settings)
    open_hosts = None if requires_callers(settings) else LOOPBACK_HOSTS | {host}
    front = Front(settings.cors_origins, settings.docs, open_hosts)
    return create_app(lambda: open_doors(settings, tokens), front)
