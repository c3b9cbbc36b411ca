"""The guard before every route: it authenticates, counts and authorises each request (RT-22).

Works for HTTP and for WebSockets. A WebSocket that is refused gets the reason with its close code.
"""

from __future__ import annotations

from fastapi import WebSocketException, status
from starlette.requests import HTTPConnection

from gateway.auth.authentication import Access
from gateway.auth.authorisation import authorise, route_of
from gateway.auth.rate_limits import count_request
from gateway.dependencies import dependencies_of
from orchestrator.errors import ParleyError
from orchestrator.ports.access import acting_tenant
from orchestrator.turns.access import ANYBODY

SUBMITTING = frozenset(
    {("POST", "/v1/sessions/{session_id}/turns"), ("POST", "/v1/sessions/{session_id}/rollback")}
)


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
    caller = connection.state.caller = await access.identify(connection)
    acting_tenant.set(caller.tenant_id)
    submitting = route_of(connection) in SUBMITTING
    await count_request(access, caller, connection.path_params["session_id"] if submitting else None)
    await authorise(connection, dependencies.owners, caller)


def is_guarded(path: str, access: Access) -> bool:
    """The API is; health is open, and so are pages without data: the inspector and the API's description."""
    return path.startswith("/v1/") or path == "/v1" or (path == "/metrics" and not access.open_metrics)
