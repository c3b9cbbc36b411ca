"""Rate limits per caller, tenant and session, and per IP address for failed authentications (RT-22)."""

import math
import time

from starlette.requests import HTTPConnection

from gateway.auth.authentication import Access
from orchestrator.errors import TooManyRequests, Unavailable
from orchestrator.ports.access import Limit, RequestLimits
from orchestrator.telemetry import get_logger
from orchestrator.turns.access import Caller
from orchestrator.types import TenantId

WARN_EVERY_S = 30.0
FAILURES_A_MINUTE, FAILURES_AT_ONCE = 60, 20  # failed authentications per IP address
NO_TENANT = TenantId("")
BURST_SHARE = 6  # a sixth of a minute's requests can arrive at the same time

_log = get_logger(__name__)
_warned_at = -WARN_EVERY_S


async def count_request(access: Access, caller: Caller, session_id: str | None = None) -> None:
    """Count a request against the caller's and tenant's limits, and the session's if `session_id` is given.

    Raises TooManyRequests.
    """
    if access.limits is None or not caller.known:
        return
    rates = access.rates
    who = (
        f"user:{caller.only_user}" if caller.only_user else caller.credential
    )  # a user's keys share one limit
    wanted = [(f"caller:{who}", rates.caller), ("tenant", rates.tenant)]
    if session_id is not None:
        wanted.append((f"session:{session_id}", rates.session))
    limits = [Limit(key, rate, max(1, rate // BURST_SHARE)) for key, rate in wanted if rate]
    await _take(access.limits, caller.tenant_id, limits, "Too many requests; wait a moment.")


async def count_failure(access: Access, connection: HTTPConnection) -> None:
    """Count a request with wrong credentials from its IP address. Raises TooManyRequests."""
    if access.limits is not None:
        address = connection.client.host if connection.client else "unknown"
        limit = Limit(f"failed:{address}", FAILURES_A_MINUTE, FAILURES_AT_ONCE)
        message = "Too many failed authentication attempts; wait a moment."
        await _take(access.limits, NO_TENANT, [limit], message)


async def _take(limits: RequestLimits, tenant_id: TenantId, wanted: list[Limit], message: str) -> None:
    if not wanted:
        return
    try:
        wait_s = await limits.take(tenant_id, wanted)
    except Unavailable as error:
        _warn(error)  # without Redis, requests are not limited: availability matters more
        return
    if wait_s > 0:
        raise TooManyRequests(message, retry_after_s=math.ceil(wait_s))


def _warn(error: Unavailable) -> None:
    global _warned_at  # noqa: PLW0603
    now = time.monotonic()
    if now - _warned_at >= WARN_EVERY_S:
        _warned_at = now
        _log.warning("Rate limits are off until Redis is available.", error=error)
