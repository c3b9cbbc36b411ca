"""Call tools through the journal, regardless of their implementation (PX-7 to PX-9)."""

import time
from functools import partial

from orchestrator.context import ToolUsed, TurnContext
from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.domain.services import Accepted, ToolCall
from orchestrator.errors import (
    ENDED_FROM_OUTSIDE,
    ConfigurationError,
    FailureCategory,
    Problem,
    ToolFailure,
    Unavailable,
)
from orchestrator.saying import say
from orchestrator.telemetry import SignalType, get_logger
from orchestrator.telemetry.metrics import TOOL_SECONDS
from orchestrator.telemetry.traces import note_failure, span
from orchestrator.tools.middleware import CallSetting, OrphanedCalls, ToolPorts, ToolRequest, wrap_calls
from orchestrator.tools.threads import ToolThreads
from orchestrator.tools.toolbox import (
    Tool,
    ToolAccepted,
    ToolAnswer,
    Toolbox,
    ToolData,
    ToolError,
    ToolResult,
    make_effect,
    read_envelope,
    write_envelope,
)
from orchestrator.tools.trifecta import carry_labels
from orchestrator.turns.effect import Effect
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import FlowId, Json, JsonObject, is_object

_log = get_logger(__name__)


class ToolRunner:
    """The tool runner for one domain. Each call receives its turn's data as a `TurnContext`."""

    def __init__(self, toolbox: Toolbox, domain: Domain, ports: ToolPorts | None = None) -> None:
        ports, orphans = ports or ToolPorts(), OrphanedCalls()
        self._later = ports.later
        self._toolbox = toolbox
        self.find, self.find_all = toolbox.find, toolbox.find_all
        self.allowed_imports = domain.config.guardrails.allowed_imports
        self._transport = ports.transport
        self._threads = ToolThreads(orphans)
        setting = CallSetting(domain.name, domain.config, ports, orphans)
        self._handlers = wrap_calls(self._send, setting, toolbox.specs())

    async def call(
        self,
        context: TurnContext,
        flow_id: FlowId,
        tool: Tool,
        arguments: JsonObject,
        *,
        again: bool = False,
        compensates: str | None = None,
    ) -> ToolResult:
        """Call a tool, or return the result from the journal or the side-effect ledger.

        Return UnknownOutcome if the tool is not idempotent and the side effect may have happened, or
        NotBegun if the turn was stopped before the call. `again`: True to repeat a side effect that the
        ledger already contains. `compensates`: the fingerprint of the side effect that the call undoes.
        """
        spec, mistake = tool.spec, tool.check_input(arguments)
        if mistake is not None:
            _log.warning("A tool's input doesn't match its schema.", tool=spec.tool_id, mistake=mistake)
            message = say("tool_bad_values", tool=spec.name)
            refusal = ToolError(FailureCategory.VALIDATION_ERROR, message)
            return _record(context, flow_id, tool, arguments, refusal)
        effect = None
        if tool.has_effect or spec.later is not None:
            effect = make_effect(context, flow_id, tool, arguments, again=again, compensates=compensates)
        key = f"tool:{spec.tool_id}:{1 + sum(used.tool_id == spec.tool_id for used in context.log.tools)}"
        context.log.event("tool_started", tool_id=spec.tool_id, flow_id=flow_id)
        began = time.perf_counter()
        answer = await context.journal.call(
            key,
            "tool",
            {"tool_id": spec.tool_id, "arguments": arguments},
            partial(self._attempt, context, tool, arguments, context.journal.idempotency_key(key), effect),
            idempotent=spec.idempotent,
            effect=effect,
        )
        lasted_ms = round((time.perf_counter() - began) * 1000, 1)
        if isinstance(answer, UnknownOutcome | NotBegun):
            return _record(context, flow_id, tool, arguments, answer, lasted_ms)
        result = read_envelope(answer)
        output = result.data if isinstance(result, ToolData) else None
        carry_labels(context.state, spec, flow_id, output)  # an error can also contain untrusted text
        if isinstance(result, ToolError) and result.undecided and not spec.idempotent:
            result = UnknownOutcome(key, answer["idempotency_key"])
        return _record(context, flow_id, tool, arguments, result, lasted_ms)

    async def expect_result(
        self, context: TurnContext, spec: ToolSpec, key: str, fingerprint: str | None, look_in_s: float
    ) -> ToolAccepted:
        """Schedule another check of a call, in `look_in_s` seconds.

        `key`: the call's idempotency key. `fingerprint`: its key in the side-effect ledger. Return the call
        as accepted in this turn.
        """
        call = self._make_call(context, key)
        if self._later is not None:
            turn_id = context.ids.turn_id
            call = await self._later.expect(spec, call, fingerprint, set_by=turn_id, look_in_s=look_in_s)
        return _accept(spec, call)

    def _make_call(self, context: TurnContext, key: str, *, repeated: bool = False) -> ToolCall:
        ids = context.ids
        return ToolCall(key, ids.session_id, ids.user_id, ids.tenant_id, context.now, ids.root, repeated)

    async def _attempt(
        self,
        context: TurnContext,
        tool: Tool,
        arguments: JsonObject,
        own_key: str,
        effect: Effect | None,
        key: str,
    ) -> JsonObject:
        """Run the tool through its middleware, and return the result as JSON.

        `own_key`: the idempotency key of this step. `key`: the key to use, which differs if the step repeats
        an earlier call.
        """
        call, later = self._make_call(context, key, repeated=key != own_key), tool.spec.later
        if later is not None and self._later is not None:
            name = None if effect is None else effect.fingerprint
            look_in_s = later.first_look_s
            call = await self._later.expect(tool.spec, call, name, set_by=own_key, look_in_s=look_in_s)
        began = time.perf_counter()
        with span("tool", tool_id=tool.spec.tool_id):
            result = await self._handlers[tool.spec.tool_id](ToolRequest(tool, arguments, call))
            if isinstance(result, ToolError):
                note_failure(result.category.value)
            is_over = isinstance(result, ToolData) or (isinstance(result, ToolError) and not result.undecided)
            if is_over and call.reference and self._later is not None:
                await self._later.forget(call)
        TOOL_SECONDS.labels(tool.spec.tool_id).observe(time.perf_counter() - began)
        return {**write_envelope(result), "idempotency_key": key}

    async def _send(self, request: ToolRequest) -> ToolAnswer:
        """Attempt the call once, and convert failures to tool errors."""
        name, call = request.tool.spec.name, request.call
        try:
            data = await self._deliver(request)
        except (*ENDED_FROM_OUTSIDE, ConfigurationError):
            raise
        except ToolFailure as failure:
            return ToolError(
                failure.category, failure.told, failure.undecided, failure.retry_after_s, failure.alternative
            )
        except TimeoutError:
            return ToolError(FailureCategory.TIMEOUT, say("tool_timeout", tool=name), undecided=True)
        except Unavailable:
            return ToolError(FailureCategory.SERVER_ERROR, say("tool_unreachable", tool=name), undecided=True)
        except (Exception, SystemExit):  # noqa: BLE001 - a domain's code may raise anything; the turn continues
            _log.exception(
                "A tool failed unexpectedly.", tool=request.spec.tool_id, call=call.idempotency_key
            )
            return ToolError(FailureCategory.SERVER_ERROR, say("tool_failed", tool=name), undecided=True)
        if isinstance(data, Accepted) and request.spec.later is not None:
            return _accept(request.spec, call, data.message)
        if is_object(data):
            return ToolData(data)
        _log.error("A tool's output is not an object.", tool=request.spec.tool_id)
        message = say("tool_bad_result", tool=name)
        return ToolError(FailureCategory.SERVER_ERROR, message, undecided=True)

    async def _deliver(self, request: ToolRequest) -> object:
        tool, call = request.tool, request.call
        if tool.spec.implementation is not Implementation.SERVICE:
            return await self._send_outside(request)
        method = self._toolbox.method(call.tenant_id, tool)
        extra = {"call": call} if method.wants_call else {}
        if method.is_async:
            return await method.run(**request.arguments, **extra)
        return await self._threads.run(tool.spec.tool_id, lambda: method.run(**request.arguments, **extra))

    async def _send_outside(self, request: ToolRequest) -> Json:
        if self._transport is None:
            message = f"can't be called: no {request.spec.implementation.value} client is configured"
            raise ConfigurationError([Problem(f"tools.yaml: tools.{request.spec.tool_id}", message)])
        try:
            return await self._transport.send(request.spec, request.arguments, request.call)
        except ToolFailure as failure:
            # A repeated attempt can fail although an earlier attempt succeeded: 409 while the first is
            # running, 404 after a deletion, or a broken connection.
            failure.undecided |= request.call.repeated
            raise


def _accept(spec: ToolSpec, call: ToolCall, message: str = "") -> ToolAccepted:
    assert spec.later is not None
    return ToolAccepted(call.idempotency_key, call.reference, call.now + spec.later.expires_s, message)


def _record(
    context: TurnContext,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    result: ToolResult,
    lasted_ms: float = 0.0,
) -> ToolResult:
    """Record the call and its result in the turn's log, unless the call did not begin. Return the result."""
    match result:
        case ToolData():
            status = "ok"
        case ToolAccepted():
            status = "accepted"
        case ToolError(category):
            status = category.value
        case UnknownOutcome():
            status = "unknown"
        case NotBegun():
            return result
    tool_id = tool.spec.tool_id
    context.log.tools.append(ToolUsed(tool_id, arguments, status))
    context.log.event("tool_finished", tool_id=tool_id, flow_id=flow_id, status=status)
    context.log.signal(
        "pex", SignalType.TOOL_CALL, flow_id, tool_id=tool_id, status=status, duration_ms=lasted_ms
    )
    return result
