"""Wrap tool calls in middleware, in `MIDDLEWARE` order.

`runner` first checks the inputs and consults the journal.
"""

import asyncio
import math
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import orjson

from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory
from orchestrator.ports.tools import RateLimits, ToolCache, ToolTransport
from orchestrator.saying import say
from orchestrator.telemetry import get_logger
from orchestrator.tools.in_process import InProcessCache, InProcessRateLimits, SharedStore
from orchestrator.tools.later import LaterResults
from orchestrator.tools.toolbox import Tool, ToolAnswer, ToolData, ToolError, digest_of
from orchestrator.types import JsonObject, ToolId, holds_nul

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    tool: Tool
    arguments: JsonObject
    call: ToolCall

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec


Handler: TypeAlias = Callable[[ToolRequest], Coroutine[Any, Any, ToolAnswer]]


@dataclass(frozen=True, slots=True)
class ToolPorts:
    """Ports for tool calls.

    `transport`: None if the process can only call services. `later`: None if the process does not accept late
    results.
    """

    transport: ToolTransport | None = None
    limits: RateLimits = field(default_factory=InProcessRateLimits)
    cache: ToolCache = field(default_factory=InProcessCache)
    later: LaterResults | None = None


ORPHANS_PER_TOOL = 8


class OrphanedCalls:
    """Abandoned calls that are still running, counted by tool."""

    def __init__(self) -> None:
        self._running: Counter[ToolId] = Counter()
        self._futures: set[asyncio.Future[Any]] = set()

    def too_many(self, tool_id: ToolId) -> bool:
        return self._running.get(tool_id, 0) >= ORPHANS_PER_TOOL

    def add(self, tool_id: ToolId, future: asyncio.Future[Any]) -> None:
        """Count an abandoned call until it ends, and log its failure."""
        if future.done():
            self._log_failure(tool_id, future)
            return
        self._running[tool_id] += 1
        if self._running[tool_id] == ORPHANS_PER_TOOL:
            _log.error(
                "Too many timed-out calls to a tool are still running; new calls are paused.",
                tool=tool_id,
            )
        self._futures.add(future)
        future.add_done_callback(lambda _: self._forget(tool_id, future))

    def _forget(self, tool_id: ToolId, future: asyncio.Future[Any]) -> None:
        self._futures.discard(future)
        self._running[tool_id] -= 1
        self._log_failure(tool_id, future)

    def _log_failure(self, tool_id: ToolId, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            _log.warning("An orphaned tool call failed.", tool=tool_id, error=error)


@dataclass(frozen=True, slots=True)
class CallSetting:
    domain_name: str
    config: DomainConfig
    ports: ToolPorts
    orphans: OrphanedCalls


class Middleware(ABC):
    def __init__(self, setting: CallSetting) -> None:
        self._setting = setting

    def wants(self, spec: ToolSpec) -> bool:
        """Return whether this middleware applies to the tool. Default: to every tool."""
        del spec
        return True

    @abstractmethod
    async def __call__(self, request: ToolRequest, inner: Handler) -> ToolAnswer:
        """Answer the request, usually through `inner`."""


def wrap_calls(transport: Handler, setting: CallSetting, tools: Iterable[ToolSpec]) -> dict[ToolId, Handler]:
    """Return a handler for each tool: `transport`, wrapped in the middleware that the tool needs."""
    made = [make(setting) for make in MIDDLEWARE]
    handlers: dict[ToolId, Handler] = {}
    for spec in tools:
        handler = transport
        for middleware in reversed(made):
            if middleware.wants(spec):
                handler = partial(middleware, inner=handler)
        handlers[spec.tool_id] = handler
    return handlers


class Cache(Middleware):
    """A cache that keeps successful results from tools without side effects for `cache_ttl_ms` milliseconds.

    Results are cached per tenant and, for tools with private data, per user. Private data without a user is
    not cached.
    """

    def __init__(self, setting: CallSetting) -> None:
        super().__init__(setting)
        self._cache = setting.ports.cache
        self._store = SharedStore("tool cache", "results are not cached")

    def wants(self, spec: ToolSpec) -> bool:
        return not spec.has_effect and spec.cache_ttl_ms > 0

    async def __call__(self, request: ToolRequest, inner: Handler) -> ToolAnswer:
        spec = request.spec
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
        return f"{self._setting.domain_name}:{spec.tool_id}:{digest_of(parts)}"


async def _nothing() -> None:
    return None


class Retry(Middleware):
    """Retries for calls to idempotent tools after transient errors, with exponential backoff and jitter."""

    def wants(self, spec: ToolSpec) -> bool:
        return spec.idempotent and spec.max_retries > 0

    async def __call__(self, request: ToolRequest, inner: Handler) -> ToolAnswer:
        outcome = await inner(request)
        for number in range(request.spec.max_retries):
            if not (isinstance(outcome, ToolError) and outcome.retryable):
                break
            pause_s = self._pause_s(number, outcome.retry_after_s)
            if pause_s > self._setting.config.resilience.backoff_max_s:
                break
            await asyncio.sleep(pause_s)
            outcome = await inner(request)
        return outcome

    def _pause_s(self, number: int, asked_for_s: float | None) -> float:
        resilience = self._setting.config.resilience
        longest = min(resilience.backoff_base_s * 2**number, resilience.backoff_max_s)
        return max(random.uniform(0, longest), asked_for_s or 0.0)


class RateLimit(Middleware):
    """A limit of `rate_limit_rpm` attempts per minute per tool, shared by all workers if a shared store exists."""

    def __init__(self, setting: CallSetting) -> None:
        super().__init__(setting)
        self._limits = setting.ports.limits
        self._own = InProcessRateLimits()
        self._store = SharedStore("rate limits", "each process counts separately")

    def wants(self, spec: ToolSpec) -> bool:
        return spec.rate_limit_rpm is not None

    async def __call__(self, request: ToolRequest, inner: Handler) -> ToolAnswer:
        rpm = request.spec.rate_limit_rpm
        assert rpm is not None
        key = f"{self._setting.domain_name}:{request.spec.tool_id}"
        wait_s = await self._store.ask(
            lambda: self._limits.take(key, per_minute=rpm),
            lambda: self._own.take(key, per_minute=rpm),
        )
        if wait_s <= 0:
            return await inner(request)
        seconds = math.ceil(wait_s)
        return ToolError(
            FailureCategory.RATE_LIMIT,
            say("tool_rate_limit", tool=request.spec.name, seconds=seconds),
            retry_after_s=wait_s,
        )


class TimeOut(Middleware):
    """A timeout of `timeout_ms` milliseconds per attempt, even for work that ignores cancellation.

    A tool with too many orphaned calls is not called.
    """

    async def __call__(self, request: ToolRequest, inner: Handler) -> ToolAnswer:
        spec = request.spec
        if self._setting.orphans.too_many(spec.tool_id):
            return ToolError(FailureCategory.TIMEOUT, say("tool_not_responding", tool=spec.name))
        future = asyncio.create_task(inner(request))
        try:
            await asyncio.wait((future,), timeout=spec.timeout_ms / 1000)
        except asyncio.CancelledError:
            self._abandon(request.spec.tool_id, future)
            raise
        if future.done() and not future.cancelled():
            return future.result()
        self._abandon(request.spec.tool_id, future)
        return ToolError(FailureCategory.TIMEOUT, say("tool_timeout", tool=spec.name), undecided=True)

    def _abandon(self, tool_id: ToolId, future: asyncio.Future[ToolAnswer]) -> None:
        """Cancel a call. If its work continues anyway, count the call as orphaned."""
        future.cancel()
        self._setting.orphans.add(tool_id, future)


class OutputCheck(Middleware):
    """A check that rejects results that are not JSON, do not match their schema or are too large to store (PX-8)."""

    async def __call__(self, request: ToolRequest, inner: Handler) -> ToolAnswer:
        outcome = await inner(request)
        if not isinstance(outcome, ToolData):
            return outcome
        mistake = self._find_mistake(request.tool, outcome.data)
        if mistake is None:
            return outcome
        _log.error("A tool's output is invalid.", tool=request.spec.tool_id, mistake=mistake)
        message = say("tool_bad_result", tool=request.spec.name)
        return ToolError(FailureCategory.SERVER_ERROR, message, undecided=True)

    def _find_mistake(self, tool: Tool, data: JsonObject) -> str | None:
        most = self._setting.config.network.max_output_bytes
        longest = max([len(value) for value in data.values() if type(value) is str], default=0)
        if longest > most:  # the size of a text is known without serialization
            return f"The output has at least {longest} bytes; the limit is {most}."
        try:
            written = orjson.dumps(data)
        except TypeError as error:
            return f"The output is not JSON: {error}"
        size = len(written)
        if holds_nul(written):
            return "The output contains a NUL character, which can't be stored."
        if size > most:
            return f"The output has {size} bytes; the limit is {most}."
        return tool.check_output(data)


# Outermost first. The rate limit counts each attempt, but not cache hits. The timeout applies to one attempt.
MIDDLEWARE: tuple[Callable[[CallSetting], Middleware], ...] = (Cache, Retry, RateLimit, TimeOut, OutputCheck)
