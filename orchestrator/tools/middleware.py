"""What a tool call passes on its way out and back, as a list of small wrappers around the transport.

The list is `wrap_calls`. The input is checked, and the journal asked, before any of it (`tools`).
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import orjson

from orchestrator.dialogue.json_values import holds_nul
from orchestrator.domain.configuration import DomainConfig, Resilience
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory
from orchestrator.ports.tools import RateLimits, ToolCache, ToolTransport
from orchestrator.telemetry import get_logger
from orchestrator.tools.in_process import InProcessCache, InProcessRateLimits, SharedStore
from orchestrator.tools.orphaned_calls import Strays
from orchestrator.tools.toolbox import Tool, ToolData, ToolError
from orchestrator.types import JsonObject

_log = get_logger(__name__)

Outcome: TypeAlias = ToolData | ToolError


@dataclass(frozen=True, slots=True)
class ToolRequest:
    tool: Tool
    arguments: JsonObject
    call: ToolCall

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec


Handler: TypeAlias = Callable[[ToolRequest], Awaitable[Outcome]]


class Wrapper(Protocol):
    async def __call__(self, request: ToolRequest, inner: Handler) -> Outcome:
        """Answer the request, usually by handing it to `inner`."""
        ...


@dataclass(frozen=True, slots=True)
class ToolPorts:
    """`transport`: None when the process can call nothing but services."""

    transport: ToolTransport | None = None
    limits: RateLimits = field(default_factory=InProcessRateLimits)
    cache: ToolCache = field(default_factory=InProcessCache)


def wrap_calls(
    carry: Handler, ports: ToolPorts, config: DomainConfig, domain_name: str, strays: Strays
) -> Handler:
    """The way of a call, outermost first.

    The limit counts what really goes out: each attempt, and nothing that the cache knows. The
    time-out is that of one attempt.
    """
    wrappers: Sequence[Wrapper] = (
        UseCache(ports.cache, domain_name),
        Retry(config.resilience),
        LimitRate(ports.limits, domain_name),
        StopWaiting(strays),
        CheckOutput(config.network.max_output_bytes),
    )
    handler = carry
    for wrapper in reversed(wrappers):
        handler = _around(wrapper, handler)
    return handler


def _around(wrapper: Wrapper, inner: Handler) -> Handler:
    return lambda request: wrapper(request, inner)


class UseCache:
    """Answers of idempotent tools are kept for `cache_ttl_ms`; errors never.

    A tool that sees private data has a cache per user; without a user it has none.
    """

    def __init__(self, cache: ToolCache, domain_name: str) -> None:
        self._cache = cache
        self._domain_name = domain_name
        self._store = SharedStore("tool cache", "every call goes out")

    async def __call__(self, request: ToolRequest, inner: Handler) -> Outcome:
        spec = request.spec
        if not spec.idempotent or not spec.cache_ttl_ms:
            return await inner(request)
        if spec.accesses_private_data and request.call.user_id is None:
            return await inner(request)
        key = self._key(request)
        known = await self._store.ask(lambda: self._cache.get(key), _nothing)
        if known is not None:
            return ToolData(orjson.loads(known))
        outcome = await inner(request)
        if isinstance(outcome, ToolData):
            value = orjson.dumps(outcome.data)
            await self._store.ask(lambda: self._cache.put(key, value, ttl_ms=spec.cache_ttl_ms), _nothing)
        return outcome

    def _key(self, request: ToolRequest) -> str:
        spec, call = request.spec, request.call
        user = call.user_id if spec.accesses_private_data else None
        parts = [call.tenant_id, user, request.tool.fingerprint, request.arguments]
        digest = hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return f"{self._domain_name}:{spec.tool_id}:{digest}"


async def _nothing() -> None:
    return None


class Retry:
    """Idempotent tools are tried again after errors that may pass, with exponential backoff and jitter."""

    def __init__(self, resilience: Resilience) -> None:
        self._resilience = resilience

    async def __call__(self, request: ToolRequest, inner: Handler) -> Outcome:
        outcome = await inner(request)
        for number in range(request.spec.max_retries if request.spec.idempotent else 0):
            if not (isinstance(outcome, ToolError) and outcome.retryable):
                break
            pause_s = self._pause_s(number, outcome.retry_after_s)
            if pause_s > self._resilience.backoff_max_s:
                break
            await asyncio.sleep(pause_s)
            outcome = await inner(request)
        return outcome

    def _pause_s(self, number: int, asked_for_s: float | None) -> float:
        longest = min(self._resilience.backoff_base_s * 2**number, self._resilience.backoff_max_s)
        return max(random.uniform(0, longest), asked_for_s or 0.0)


class LimitRate:
    """At most `rate_limit_rpm` attempts a minute, of all workers together; of this one when nobody counts."""

    def __init__(self, limits: RateLimits, domain_name: str) -> None:
        self._limits = limits
        self._own = InProcessRateLimits()
        self._domain_name = domain_name
        self._store = SharedStore("rate limits", "each process counts for itself")

    async def __call__(self, request: ToolRequest, inner: Handler) -> Outcome:
        rpm = request.spec.rate_limit_rpm
        if rpm is None:
            return await inner(request)
        key = f"{self._domain_name}:{request.spec.tool_id}"
        wait_s = await self._store.ask(
            lambda: self._limits.take(key, per_minute=rpm),
            lambda: self._own.take(key, per_minute=rpm),
        )
        if wait_s <= 0:
            return await inner(request)
        seconds = math.ceil(wait_s)
        return ToolError(
            FailureCategory.RATE_LIMIT,
            f"{request.spec.name} is asked too often at the moment. Please try again in "
            f"{seconds} {'second' if seconds == 1 else 'seconds'}.",
            retry_after_s=wait_s,
        )


class StopWaiting:
    """Waits for `timeout_ms`, even for work that does not end when it is cancelled.

    A tool of which too many given-up calls still run is not called.
    """

    def __init__(self, strays: Strays) -> None:
        self._strays = strays

    async def __call__(self, request: ToolRequest, inner: Handler) -> Outcome:
        spec = request.spec
        if self._strays.too_many(spec.tool_id):
            return ToolError(FailureCategory.TIMEOUT, f"{spec.name} does not answer at the moment.")
        future = asyncio.ensure_future(inner(request))
        try:
            done, _ = await asyncio.wait((future,), timeout=spec.timeout_ms / 1000)
        except asyncio.CancelledError:
            self._let_go(request, future)
            raise
        if done and not future.cancelled():
            return future.result()
        self._let_go(request, future)
        return ToolError(FailureCategory.TIMEOUT, f"{spec.name} did not answer in time.", undecided=True)

    def _let_go(self, request: ToolRequest, future: asyncio.Future[Outcome]) -> None:
        """Cancel what can be cancelled, and let the rest go on."""
        future.cancel()
        self._strays.add(request.spec.tool_id, future)


class CheckOutput:
    """What a tool says must fit its schema and be of a size that can be kept (PX-8)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def __call__(self, request: ToolRequest, inner: Handler) -> Outcome:
        outcome = await inner(request)
        if isinstance(outcome, ToolError):
            return outcome
        mistake = self._find_mistake(request.tool, outcome.data)
        if mistake is None:
            return outcome
        _log.error("A tool's output cannot be used.", tool=request.spec.tool_id, mistake=mistake)
        message = f"{request.spec.name} gave an answer that I cannot use."
        return ToolError(FailureCategory.SERVER_ERROR, message, undecided=True)

    def _find_mistake(self, tool: Tool, data: JsonObject) -> str | None:
        longest = max((len(value) for value in data.values() if isinstance(value, str)), default=0)
        if longest > self._max_bytes:  # it need not be written out to be seen
            return f"It has more than {longest} bytes, and {self._max_bytes} are taken in."
        try:
            written = orjson.dumps(data)
        except TypeError as error:
            return f"It is no JSON: {error}"
        size = len(written)
        if holds_nul(written):
            return "It holds a NUL character, which no store takes."
        if size > self._max_bytes:
            return f"It has {size} bytes, and {self._max_bytes} are taken in."
        return tool.check_output(data)
