"""The guard before every route: it authenticates, counts and authorises each request (RT-22).

Works for HTTP and for WebSockets. A WebSocket that is refused gets the reason with its close code.
"""

from fastapi import WebSocketException, status
from starlette.requests import HTTPConnection

from gateway.auth.authentication import TICKET, Access
from gateway.auth.authorisation import authorise, route_of
from gateway.auth.rate_limits import count_failure, count_request
from gateway.dependencies import dependencies_of
from orchestrator.domain.export_links import PREFIX as EXPORTS
from orchestrator.errors import ParleyError, Unauthenticated
from orchestrator.ports.access import acting_tenant
from orchestrator.turns.access import ANYBODY, Caller

SUBMITTING = frozenset(
    ("POST", f"/v1/sessions/{{session_id}}/{name}") for name in ("turns", "rollback", "branch")
)

# Where a browser sends no header: a ticket in the address stands for one there, and nowhere else.
BY_TICKET = frozenset({("GET", "/v1/sessions/{session_id}/events"), ("GET", "/v1/sessions/{session_id}/ws")})


async def guard(connection: HTTPConnection) -> None:
    """Authenticate, count and authorise the request; the routes then get the caller as `TheCaller`.

    Raises Unauthenticated, Forbidden, NotFound, TooManyRequests.
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
    if not is_guarded(connection.url.path, access):
        return
    route = route_of(connection)
    caller = connection.state.caller = await _identify(connection, access, by_ticket=route in BY_TICKET)
    acting_tenant.set(caller.tenant_id)
    await count_request(access, caller, connection.path_params["session_id"] if route in SUBMITTING else None)
    await authorise(connection, dependencies.owners, caller)


async def _identify(connection: HTTPConnection, access: Access, *, by_ticket: bool) -> Caller:
    """Authenticate, and count wrong credentials by the address that they come from."""
    try:
        return await access.identify(connection, by_ticket=by_ticket)
    except Unauthenticated:
        if "authorization" in connection.headers or TICKET in connection.query_params:
            await count_failure(access, connection.client.host if connection.client else "unknown")
        raise


def is_guarded(path: str, access: Access) -> bool:
    """The API is, but for exports, whose paths are signed; health is open, and so are pages without data."""
    if path.startswith(EXPORTS):
        return False
    return path.startswith("/v1/") or path == "/v1" or (path == "/metrics" and not access.open_metrics)
