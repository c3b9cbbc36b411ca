"""How often a caller may ask: requests are counted per caller, per tenant and, for turns, per session (RT-22)."""

from __future__ import annotations

import math
import time

from gateway.auth.authentication import Access
from orchestrator.errors import TooManyRequests, Unavailable
from orchestrator.ports.access import Limit
from orchestrator.telemetry import get_logger
from orchestrator.turns.access import Caller

WARN_EVERY_S = 30.0
BURST_SHARE = 6  # a sixth of a minute's requests may come at once

_log = get_logger(__name__)
_warned_at = -WARN_EVERY_S


async def count_request(access: Access, caller: Caller, session_id: str | None = None) -> None:
    """Count one request; `session_id`: of the session that it submits a turn to. Raises TooManyRequests."""
    if access.limits is None or not caller.known:
        return
    rates = access.rates
    wanted = [(f"caller:{caller.credential}", rates.caller), ("tenant", rates.tenant)]
    if session_id is not None:
        wanted.append((f"session:{session_id}", rates.session))
    limits = [Limit(key, rate, max(1, rate // BURST_SHARE)) for key, rate in wanted if rate]
    if not limits:
        return
    try:
        wait_s = await access.limits.take(caller.tenant_id, limits)
    except Unavailable as error:
        _warn(error)  # without Redis nobody is counted: to answer is worth more
        return
    if wait_s > 0:
        raise TooManyRequests("Too many requests; wait a moment.", retry_after_s=math.ceil(wait_s))


def _warn(error: Unavailable) -> None:
    """Log once in a while, not for every request."""
    global _warned_at  # noqa: PLW0603
    now = time.monotonic()
    if now - _warned_at >= WARN_EVERY_S:
        _warned_at = now
        _log.warning("Requests are not limited at present.", error=error)
