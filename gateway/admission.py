"""The door itself: every request is identified, counted and authorised here, before its route runs.

Works for HTTP and for WebSockets. What a refused WebSocket is told is its close code.
"""

from __future__ import annotations

import math
import time

from fastapi import WebSocketException, status
from starlette.requests import HTTPConnection

from gateway.authentication import Access, Rates
from gateway.authorisation import authorise, route_of
from gateway.doors import doors_of
from orchestrator.errors import ParleyError, TooManyRequests, Unavailable
from orchestrator.ports.access import Limit, acting_tenant
from orchestrator.telemetry import get_logger
from orchestrator.turns.access import ANYBODY, Caller

WARN_EVERY_S = 30.0
BURST_SHARE = 6
"""A sixth of a minute's requests may come at once."""
SUBMITTING = frozenset(
    {("POST", "/v1/sessions/{session_id}/turns"), ("POST", "/v1/sessions/{session_id}/rollback")}
)

_log = get_logger(__name__)
_warned_at = -WARN_EVERY_S


async def admit(connection: HTTPConnection) -> None:
    """Find out who asks and whether he may; the routes then see him as `TheCaller`.

    Raises Unauthenticated, Forbidden, NotFound, TooManyRequests.
    """
    try:
        await _admit(connection)
    except ParleyError as error:
        if connection.scope["type"] != "websocket":
            raise
        raise WebSocketException(status.WS_1008_POLICY_VIOLATION, str(error)[:120]) from error


async def _admit(connection: HTTPConnection) -> None:
    access = doors_of(connection).access
    connection.state.caller = ANYBODY
    if not is_guarded(connection.url.path, access):
        return
    caller = connection.state.caller = await access.identify(connection)
    acting_tenant.set(caller.tenant_id)
    await _count(connection, access, caller)
    await authorise(connection, doors_of(connection), caller)


def is_guarded(path: str, access: Access) -> bool:
    """The API is; health is open, and so are pages without data: the inspector and the API's description."""
    return path.startswith("/v1/") or path == "/v1" or (path == "/metrics" and not access.open_metrics)


async def count_turn(access: Access, caller: Caller, session_id: str) -> None:
    """Count a turn that comes over an open socket. Raises TooManyRequests."""
    await _take(access, caller, _limits(access.rates, caller, session_id))


async def _count(connection: HTTPConnection, access: Access, caller: Caller) -> None:
    submitting = route_of(connection) in SUBMITTING
    session_id = connection.path_params["session_id"] if submitting else None
    await _take(access, caller, _limits(access.rates, caller, session_id))


async def _take(access: Access, caller: Caller, limits: list[Limit]) -> None:
    if access.limits is None or not limits:
        return
    try:
        wait_s = await access.limits.take(caller.tenant_id, limits)
    except Unavailable as error:
        _warn(error)  # without Redis nobody is counted: to answer is worth more
        return
    if wait_s > 0:
        raise TooManyRequests("Too many requests; wait a moment.", retry_after_s=math.ceil(wait_s))


def _limits(rates: Rates, caller: Caller, session_id: str | None) -> list[Limit]:
    """What a request counts against; nobody is counted where nobody is known."""
    if not caller.known:
        return []
    wanted = [(f"caller:{caller.credential}", rates.caller), ("tenant", rates.tenant)]
    if session_id is not None:
        wanted.append((f"session:{session_id}", rates.session))
    return [Limit(key, rate, max(1, rate // BURST_SHARE)) for key, rate in wanted if rate]


def _warn(error: Unavailable) -> None:
    """Once in a while, not for every request."""
    global _warned_at  # noqa: PLW0603
    now = time.monotonic()
    if now - _warned_at >= WARN_EVERY_S:
        _warned_at = now
        _log.warning("Requests are not limited at present.", error=error)
