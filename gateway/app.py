"""The gateway application: routes, limits and errors around the ports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from gateway import openapi, problems
from gateway.doors import Doors, MemoryDoors
from gateway.limits import BodyLimit
from gateway.routes import (
    approvals,
    documents,
    events,
    feedback,
    health,
    looking,
    preferences,
    runs,
    sessions,
    socket,
    turns,
)
from orchestrator.adapters.frame_pages import FramePages
from orchestrator.adapters.postgres.archive import PostgresArchive
from orchestrator.adapters.postgres.feedback import PostgresFeedback
from orchestrator.adapters.postgres.scratchpad import PostgresScratchpadArchive
from orchestrator.adapters.redis.scratchpad import RedisScratchpad
from orchestrator.bootstrap import make_services, open_ports
from orchestrator.settings import Settings, load_settings
from orchestrator.telemetry import log_signal

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
    health,
)
"""In the order in which the documentation shows them."""

OpenDoors = Callable[[], AbstractAsyncContextManager[Doors]]


@asynccontextmanager
async def open_doors(settings: Settings) -> AsyncGenerator[Doors]:
    """The ports over the real stores; they need not answer yet."""
    async with open_ports(settings) as ports:
        yield Doors(
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
            tell_of_runs=ports.messages.tell_of_runs,
            events=ports.events,
            live=ports.live,
            archive=PostgresArchive(ports.database),
            feedback=PostgresFeedback(ports.database),
            scratchpad=RedisScratchpad(ports.redis, PostgresScratchpadArchive(ports.database)),
            pages=FramePages(ports.domains, lambda loaded: make_services(loaded, ports)),
            record_signal=log_signal,
            memory=MemoryDoors(ports.context, ports.preferences),
        )


def create_app(open_doors: OpenDoors) -> FastAPI:
    """The application; `open_doors` is entered when it starts and left when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_doors() as doors:
            app.state.doors = doors
            yield

    app = FastAPI(
        title="Parley",
        version="1",
        summary="A distributed runtime for task-oriented conversational agents",
        lifespan=lifespan,
        redoc_url=None,
        generate_unique_id_function=openapi.operation_id,
    )
    problems.install(app)
    app.add_middleware(BodyLimit)
    for part in PARTS:
        app.include_router(part.router)
    app.openapi = lambda: openapi.describe(app)
    return app


def production_app() -> FastAPI:
    """The application over the stores that the environment names."""
    return create_app(lambda: open_doors(load_settings()))
