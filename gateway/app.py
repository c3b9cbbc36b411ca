import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware

from gateway import openapi, problems, wiring
from gateway.auth.binding import requires_callers
from gateway.dependencies import Dependencies
from gateway.guard import guard
from gateway.inspector import page as inspector
from gateway.middleware.body_limit import BodyLimit
from gateway.middleware.hosts import LOOPBACK_HOSTS, AllowedHosts
from gateway.middleware.metrics import RequestMetrics
from gateway.middleware.security_headers import SecurityHeaders
from gateway.routes import (
    access,
    agui,
    approvals,
    calls,
    cases,
    documentation,
    documents,
    domains,
    events,
    feedback,
    health,
    metrics,
    outside_events,
    preferences,
    read_models,
    runs,
    sessions,
    socket,
    turn_search,
    turns,
    webhooks,
)
from orchestrator.settings import load_settings
from orchestrator.telemetry.traces import set_up_tracing, shut_down_tracing

# In documentation order.
ROUTES = (
    sessions,
    turn_search,  # before `turns`, whose ID parameter would match these paths
    turns,
    read_models,
    feedback,
    cases,
    events,
    outside_events,
    socket,
    agui,
    approvals,
    calls,
    domains,
    runs,
    documents,
    preferences,
    webhooks,
    access,
    health,
    metrics,
)

OpenDependencies = Callable[[], AbstractAsyncContextManager[Dependencies]]


@dataclass(frozen=True, slots=True)
class Exposure:
    """The gateway's exposure to browsers.

    `cors_origins`: origins whose pages can call the API. `docs`: True to serve the API documentation. `hosts`:
    accepted host names, or None to accept any.
    """

    cors_origins: tuple[str, ...] = ()
    docs: bool = True
    hosts: frozenset[str] | None = None


def create_app(open_dependencies: OpenDependencies, exposure: Exposure | None = None) -> FastAPI:
    """Create the application.

    `open_dependencies`: returns a context manager with the dependencies, open from startup to shutdown.
    """
    exposure = exposure or Exposure()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_dependencies() as dependencies:
            app.state.dependencies = dependencies
            yield
        shut_down_tracing()

    app = FastAPI(
        title="Parley",
        version="1",
        summary="A distributed runtime for task-oriented conversational agents",
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,
        openapi_url="/openapi.json" if exposure.docs else None,
        # A redirect would send the query, including the ticket, to any host named in the caller's Host
        # header.
        redirect_slashes=False,
        dependencies=[Depends(guard)],
        generate_unique_id_function=openapi.operation_id,
    )
    problems.install(app)
    _trace(app)
    _add_middleware(app, exposure)
    for module in (*ROUTES, *((documentation,) if exposure.docs else ())):
        app.include_router(module.router)
    inspector.install(app)
    app.openapi = lambda: openapi.describe(app)
    return app


def _trace(app: FastAPI) -> None:
    """Export requests as spans in the caller's trace, if tracing is enabled."""
    if set_up_tracing("gateway", os.environ):
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor  # noqa: PLC0415  # rarely needed

        FastAPIInstrumentor.instrument_app(app, excluded_urls="health,metrics")


def _add_middleware(app: FastAPI, exposure: Exposure) -> None:
    """Add the middleware, innermost first."""
    app.add_middleware(BodyLimit)
    if exposure.hosts is not None:
        app.add_middleware(AllowedHosts, hosts=exposure.hosts, origins=exposure.cors_origins)
    app.add_middleware(SecurityHeaders, shared=bool(exposure.cors_origins))
    app.add_middleware(RequestMetrics)
    if exposure.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=exposure.cors_origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=[
                *("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"),
                *("traceparent", "tracestate", "baggage"),  # sent by traced pages (W3C)
            ],
            expose_headers=["Retry-After"],
        )


def production_app(host: str = "127.0.0.1") -> FastAPI:
    """Create the application with the configured stores. Raises ConfigurationError.

    `host`: the address that the server listens on.
    """
    settings = load_settings()
    tokens = None
    if settings.jwt_key is not None or settings.jwt_jwks is not None:
        # Imported here because the library takes 15 MB, and few gateways accept tokens.
        from gateway.auth.tokens import read_tokens  # noqa: PLC0415

        tokens = read_tokens(settings)
    open_hosts = None if requires_callers(settings) else LOOPBACK_HOSTS | {host}
    exposure = Exposure(settings.cors_origins, settings.docs, open_hosts)
    return create_app(lambda: wiring.open_dependencies(settings, tokens), exposure)
