"""Guard HTTP and WebSocket routes: authenticate, count and authorize each request (RT-22).

Rejected WebSockets are closed with a code and a reason.
"""

from fastapi import WebSocketException, status
from starlette.requests import HTTPConnection

from gateway.auth.authentication import TICKET, Access
from gateway.auth.authorization import authorize, route_of
from gateway.auth.rate_limits import count_failure, count_request
from gateway.dependencies import dependencies_of
from orchestrator.adapters.local_names import is_private_name
from orchestrator.domain.export_links import PREFIX as EXPORTS
from orchestrator.errors import ParleyError, Unauthenticated
from orchestrator.ports.access import acting_tenant
from orchestrator.turns.access import ANYBODY, Caller
from orchestrator.turns.scheduled import CALLS
from orchestrator.types import SessionId

SUBMITTING = frozenset(
    ("POST", f"/v1/sessions/{{session_id}}/{name}") for name in ("turns", "rollback", "branch")
)

# Browsers can't send headers to these routes, so a ticket in the URL replaces the `Authorization` header.
EVENTS = ("GET", "/v1/sessions/{session_id}/events")
BY_TICKET = frozenset({EVENTS, ("GET", "/v1/sessions/{session_id}/ws")})


async def guard(connection: HTTPConnection) -> None:
    """Authenticate, count and authorize a request. Routes receive the caller as `TheCaller`.

    Raises Unauthenticated, Forbidden, NotFound, TooManyRequests or Unavailable, or WebSocketException instead
    for a WebSocket.
    """
    try:
        await _guard(connection)
    except ParleyError as error:
        if connection.scope["type"] != "websocket":
            raise
        raise WebSocketException(status.WS_1008_POLICY_VIOLATION, str(error)[:120]) from error


async def _guard(connection: HTTPConnection) -> None:
    dependencies = dependencies_of(connection)
    access = dependencies.access
    connection.state.caller = ANYBODY
    if not is_guarded(connection, access):
        return
    route = route_of(connection)
    stream = SessionId(connection.path_params["session_id"]) if route == EVENTS else None
    by_ticket = route in BY_TICKET
    caller = connection.state.caller = await _identify(connection, access, by_ticket=by_ticket, stream=stream)
    acting_tenant.set(caller.tenant_id)
    await count_request(access, caller, connection.path_params["session_id"] if route in SUBMITTING else None)
    await authorize(connection, dependencies.owners, caller)


async def _identify(
    connection: HTTPConnection, access: Access, *, by_ticket: bool, stream: SessionId | None
) -> Caller:
    """Authenticate the caller, and count wrong credentials per IP address."""
    try:
        return await access.identify(connection, by_ticket=by_ticket, stream=stream)
    except Unauthenticated:
        if "authorization" in connection.headers or TICKET in connection.query_params:
            await count_failure(access, connection)
        raise


def is_guarded(connection: HTTPConnection, access: Access) -> bool:
    """Return True if a request needs credentials.

    API calls need credentials, except on signed paths. Metrics need credentials unless `open_metrics` is set
    and the request's host is private. The host check prevents web pages from reading metrics by DNS
    rebinding. All other paths are open.
    """
    path = connection.scope["path"]
    if path == "/metrics":
        return not (access.open_metrics and is_private_name(connection.headers.get("host", "")))
    return (path.startswith("/v1/") or path == "/v1") and not path.startswith((EXPORTS, CALLS))
