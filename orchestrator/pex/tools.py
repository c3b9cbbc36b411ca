"""Calls tools: schemas enforced, through the journal, with time-outs that really stop waiting, and retries.

Which tool is called with what is a policy's business (PX-8, PX-9).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor

from orchestrator.dialogue.json_values import is_object
from orchestrator.domain.configuration import Resilience
from orchestrator.domain.services import ToolCall
from orchestrator.errors import (
    ConfigurationError,
    DeadlineExceeded,
    FailureCategory,
    LaneLost,
    ToolFailure,
    TurnCancelled,
    Unavailable,
)
from orchestrator.pex.envelope import ToolData, ToolError, ToolResult, read_envelope, write_envelope
from orchestrator.pex.toolbox import BoundMethod, Tool, Toolbox
from orchestrator.telemetry import SignalType, get_logger
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import FlowId, Json, JsonObject, ToolId
from orchestrator.world.world import ToolUsed, World

SYNCHRONOUS_TOOLS_AT_ONCE = 64

PASS_THROUGH = (TurnCancelled, LaneLost, DeadlineExceeded)
"""What ends a turn from outside is never turned into a tool's error."""

_log = get_logger(__name__)


class ToolRunner:
    """One per process and domain; everything that belongs to a turn is in the world it is given."""

    def __init__(self, toolbox: Toolbox, resilience: Resilience) -> None:
        self._toolbox = toolbox
        self._resilience = resilience
        self._threads = ThreadPoolExecutor(SYNCHRONOUS_TOOLS_AT_ONCE, thread_name_prefix="tool")
        self._stray: set[asyncio.Future[object]] = set()

    def find(self, tool_id: ToolId) -> Tool | None:
        return self._toolbox.find(tool_id)

    async def call(self, world: World, flow_id: FlowId, tool: Tool, arguments: JsonObject) -> ToolResult:
        """Call a tool once, or answer from the journal.

        UnknownOutcome: it is not idempotent and nobody knows whether it had its effect.
        """
        tool_id = tool.spec.tool_id
        mistake = tool.check_input(arguments)
        if mistake is not None:
            return self._finish(world, flow_id, tool, arguments, _bad_input(tool, mistake))
        number = 1 + sum(used.tool_id == tool_id for used in world.tools)
        world.event("tool_started", tool_id=tool_id, flow_id=flow_id)
        answer = await world.steps.call(
            f"tool:{tool_id}:{number}",
            "tool",
            {"tool_id": tool_id, "arguments": arguments},
            lambda key: self._attempt(world, tool, arguments, key),
            idempotent=tool.spec.idempotent,
        )
        if isinstance(answer, UnknownOutcome):
            return self._finish(world, flow_id, tool, arguments, answer)
        result = read_envelope(answer)
        if isinstance(result, ToolError) and result.undecided and not tool.spec.idempotent:
            key = f"tool:{tool_id}:{number}"
            return self._finish(
                world, flow_id, tool, arguments, UnknownOutcome(key, f"{world.turn_id}:{key}")
            )
        return self._finish(world, flow_id, tool, arguments, result)

    def _finish(
        self, world: World, flow_id: FlowId, tool: Tool, arguments: JsonObject, result: ToolResult
    ) -> ToolResult:
        match result:
            case ToolData():
                status = "ok"
            case ToolError(category):
                status = category.value
            case UnknownOutcome():
                status = "unknown"
        tool_id = tool.spec.tool_id
        world.tools.append(ToolUsed(tool_id, arguments, status))
        world.event("tool_finished", tool_id=tool_id, flow_id=flow_id, status=status)
        world.signal("pex", SignalType.TOOL_CALL, flow_id, tool_id=tool_id, status=status)
        return result

    async def _attempt(self, world: World, tool: Tool, arguments: JsonObject, key: str) -> JsonObject:
        """Run the tool, again if that is allowed and may help; gives the envelope."""
        call = ToolCall(key, world.session_id, world.user_id, world.tenant_id, world.now)
        retries = tool.spec.max_retries if tool.spec.idempotent else 0
        result = await self._once(tool, arguments, call)
        for number in range(retries):
            if not (isinstance(result, ToolError) and result.retryable):
                break
            await asyncio.sleep(self._backoff_s(number))
            result = await self._once(tool, arguments, call)
        return write_envelope(result)

    def _backoff_s(self, number: int) -> float:
        """Exponential with full jitter."""
        longest = min(self._resilience.backoff_base_s * 2**number, self._resilience.backoff_max_s)
        return random.uniform(0, longest)

    async def _once(self, tool: Tool, arguments: JsonObject, call: ToolCall) -> ToolData | ToolError:
        try:
            method = self._toolbox.method(call.tenant_id, tool)
            data = await self._within(tool.spec.timeout_ms / 1000, self._start(method, arguments, call))
        except PASS_THROUGH:
            raise
        except TimeoutError:
            return ToolError(
                FailureCategory.TIMEOUT, f"{tool.spec.name} did not answer in time.", undecided=True
            )
        except ToolFailure as failure:
            return ToolError(failure.category, str(failure))
        except Unavailable:
            return ToolError(
                FailureCategory.SERVER_ERROR, f"{tool.spec.name} cannot be reached.", undecided=True
            )
        except ConfigurationError:
            raise
        except Exception:  # noqa: BLE001 - a domain's own code may raise anything; the turn goes on
            _log.exception("A tool broke.", tool=tool.spec.tool_id, turn=call.idempotency_key)
            return ToolError(FailureCategory.SERVER_ERROR, f"{tool.spec.name} did not work.", undecided=True)
        return _checked_output(tool, data)

    def _start(self, method: BoundMethod, arguments: JsonObject, call: ToolCall) -> Awaitable[object]:
        extra = {"call": call} if method.wants_call else {}
        if method.is_async:
            return method.run(**arguments, **extra)
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._threads, lambda: method.run(**arguments, **extra))

    async def _within(self, timeout_s: float, work: Awaitable[object]) -> object:
        """Wait at most so long, even for work that does not end when it is cancelled."""
        future = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait((future,), timeout=timeout_s)
        except asyncio.CancelledError:
            self._let_go(future)
            raise
        if done:
            return future.result()
        self._let_go(future)
        raise TimeoutError

    def _let_go(self, future: asyncio.Future[object]) -> None:
        """Cancel what can be cancelled and hear the rest out without waiting for it."""
        self._stray.add(future)
        future.add_done_callback(self._forget)
        future.cancel()

    def _forget(self, future: asyncio.Future[object]) -> None:
        self._stray.discard(future)
        if not future.cancelled() and future.exception() is not None:
            _log.warning("A tool that nobody waited for broke.", error=str(future.exception()))


def _bad_input(tool: Tool, mistake: str) -> ToolError:
    _log.warning("A tool's input does not fit its schema.", tool=tool.spec.tool_id, mistake=mistake)
    return ToolError(FailureCategory.VALIDATION_ERROR, f"{tool.spec.name} cannot work with these values.")


def _checked_output(tool: Tool, data: Json) -> ToolData | ToolError:
    mistake = tool.check_output(data)
    if mistake is None and is_object(data):
        return ToolData(data)
    _log.error("A tool's output does not fit its schema.", tool=tool.spec.tool_id, mistake=mistake)
    message = f"{tool.spec.name} gave an answer that I cannot use."
    return ToolError(FailureCategory.SERVER_ERROR, message, undecided=True)
