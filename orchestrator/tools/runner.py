"""What a call that is not idempotent is about to do, as the journal and the ledger know it (RT-9, RT-10)."""

from __future__ import annotations

import time

from orchestrator.context import ToolUsed, TurnContext
from orchestrator.dialogue.json_values import is_object
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.domain.model import Domain, Implementation
from orchestrator.domain.services import ToolCall
from orchestrator.errors import (
    ConfigurationError,
    DeadlineExceeded,
    FailureCategory,
    LaneLost,
    Problem,
    ToolFailure,
    TurnCancelled,
    Unavailable,
)
from orchestrator.telemetry import SignalType, get_logger
from orchestrator.telemetry.metrics import TOOL_SECONDS, labelled
from orchestrator.telemetry.traces import note_failure, span
from orchestrator.tools.guardrails import PythonRules
from orchestrator.tools.middleware import ToolPorts, ToolRequest, wrap_calls
from orchestrator.tools.orphaned_calls import Strays, ToolThreads
from orchestrator.tools.toolbox import (
    Tool,
    Toolbox,
    ToolData,
    ToolError,
    ToolResult,
    read_envelope,
    write_envelope,
)
from orchestrator.tools.trifecta import carry_labels
from orchestrator.turns.effect import Effect, LedgerStatus, fingerprint_effect
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import FlowId, Json, JsonObject, ToolId


def make_effect(
    context: TurnContext,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    *,
    again: bool = False,
    compensates: str | None = None,
) -> Effect:
    """The effect of a call for a flow. A step that is planned anew is the same flow instance."""
    flow = context.changes.state.stack.get(flow_id)
    instance = f"{flow.plan_id}:{flow.dact}" if flow is not None and flow.plan_id is not None else flow_id
    return Effect(
        fingerprint=fingerprint_effect(tool.spec.tool_id, arguments, instance, defaults=_defaults(tool)),
        flow_id=flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        slots={} if flow is None else flow.values(),
        judge=judge,
        again=again,
        compensates=compensates,
    )


def judge(envelope: Json) -> LedgerStatus:
    """What the envelope of a finished call tells about its effect."""
    result = read_envelope(envelope)
    if not isinstance(result, ToolError):
        return LedgerStatus.DONE
    return LedgerStatus.UNKNOWN if result.undecided else LedgerStatus.FAILED


def keep_note(context: TurnContext, note: EffectNote) -> None:
    """Remember an effect; one that was unknown until now is replaced."""
    notes = context.changes.state.effects
    for place, known in enumerate(notes):
        if known.fingerprint and known.fingerprint == note.fingerprint:
            notes[place] = note
            return
    notes.append(note)


def note_unknown(context: TurnContext, effect: Effect, summary: str) -> None:
    """Remember a call that may have had its effect, so that a correction can name it (RT-12)."""
    note = EffectNote(
        tool_id=effect.tool_id,
        flow_id=effect.flow_id,
        slots=effect.slots,
        arguments=effect.arguments,
        summary=summary,
        status=EffectStatus.UNKNOWN,
        turn_id=context.ids.turn_id,
        fingerprint=effect.fingerprint,
    )
    keep_note(context, note)


def _defaults(tool: Tool) -> JsonObject:
    properties: JsonObject = tool.spec.input_schema.get("properties", {})
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if is_object(schema) and "default" in schema
    }


PASS_THROUGH = (TurnCancelled, LaneLost, DeadlineExceeded)
"""What ends a turn from outside is never turned into a tool's error."""

_log = get_logger(__name__)


class ToolRunner:
    """One per process and domain; everything that belongs to a turn is in the world it is given."""

    def __init__(self, toolbox: Toolbox, domain: Domain, ports: ToolPorts | None = None) -> None:
        ports = ports or ToolPorts()
        strays = Strays()
        self._toolbox = toolbox
        self.python_rules = PythonRules.from_config(domain.config.guardrails)
        self._transport = ports.transport
        self._threads = ToolThreads(strays)
        self._handle = wrap_calls(self._carry, ports, domain.config, domain.name, strays)

    def find(self, tool_id: ToolId) -> Tool | None:
        return self._toolbox.find(tool_id)

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
        """Call a tool once, or answer from the journal or the ledger.

        UnknownOutcome: it is not idempotent and nobody knows whether it had its effect. `again`: it
        was decided to call it all the same. `compensates`: the effect in the ledger that it undoes.
        """
        tool_id = tool.spec.tool_id
        mistake = tool.check_input(arguments)
        if mistake is not None:
            return _finish(context, flow_id, tool, arguments, _bad_input(tool, mistake))
        number = 1 + sum(used.tool_id == tool_id for used in context.log.tools)
        context.log.event("tool_started", tool_id=tool_id, flow_id=flow_id)
        answer = await context.journal.call(
            f"tool:{tool_id}:{number}",
            "tool",
            {"tool_id": tool_id, "arguments": arguments},
            lambda key: self._attempt(context, tool, arguments, key),
            idempotent=tool.spec.idempotent,
            effect=None
            if tool.spec.idempotent
            else make_effect(context, flow_id, tool, arguments, again=again, compensates=compensates),
        )
        if isinstance(answer, UnknownOutcome):
            return _finish(context, flow_id, tool, arguments, answer)
        carry_labels(context.changes.state, tool.spec, flow_id)  # its words may be in an error as well
        result = read_envelope(answer)
        if isinstance(result, ToolError) and result.undecided and not tool.spec.idempotent:
            unknown = UnknownOutcome(f"tool:{tool_id}:{number}", answer["idempotency_key"])
            return _finish(context, flow_id, tool, arguments, unknown)
        return _finish(context, flow_id, tool, arguments, result)

    async def _attempt(self, context: TurnContext, tool: Tool, arguments: JsonObject, key: str) -> JsonObject:
        """Run the tool, again if that is allowed and may help; gives the envelope."""
        call = ToolCall(key, context.ids.session_id, context.ids.user_id, context.ids.tenant_id, context.now)
        began = time.perf_counter()
        with span("tool", tool_id=tool.spec.tool_id):
            result = await self._handle(ToolRequest(tool, arguments, call))
            if isinstance(result, ToolError):
                note_failure(result.category.value)
        labelled(TOOL_SECONDS, tool.spec.tool_id).observe(time.perf_counter() - began)
        return {**write_envelope(result), "idempotency_key": key}

    async def _carry(self, request: ToolRequest) -> ToolData | ToolError:
        """One attempt, whatever implements the tool; names what went wrong."""
        name, call = request.spec.name, request.call
        try:
            data = await self._deliver(request)
        except (*PASS_THROUGH, ConfigurationError):
            raise
        except ToolFailure as failure:
            return ToolError(failure.category, str(failure), failure.undecided, failure.retry_after_s)
        except TimeoutError:
            return ToolError(FailureCategory.TIMEOUT, f"{name} did not answer in time.", undecided=True)
        except Unavailable:
            return ToolError(FailureCategory.SERVER_ERROR, f"{name} cannot be reached.", undecided=True)
        except (Exception, SystemExit):  # noqa: BLE001 - a domain's own code may raise anything; the turn goes on
            _log.exception("A tool broke.", tool=request.spec.tool_id, turn=call.idempotency_key)
            return ToolError(FailureCategory.SERVER_ERROR, f"{name} did not work.", undecided=True)
        if is_object(data):
            return ToolData(data)
        _log.error("A tool's output is no object.", tool=request.spec.tool_id)
        message = f"{name} gave an answer that I cannot use."
        return ToolError(FailureCategory.SERVER_ERROR, message, undecided=True)

    async def _deliver(self, request: ToolRequest) -> object:
        tool, call = request.tool, request.call
        if tool.spec.implementation is not Implementation.SERVICE:
            return await self._send(request)
        method = self._toolbox.method(call.tenant_id, tool)
        extra = {"call": call} if method.wants_call else {}
        if method.is_async:
            return await method.run(**request.arguments, **extra)
        return await self._threads.run(tool.spec.tool_id, lambda: method.run(**request.arguments, **extra))

    async def _send(self, request: ToolRequest) -> Json:
        if self._transport is None:
            message = f"Nothing here calls tools over {request.spec.implementation.value}."
            raise ConfigurationError([Problem(f"tools.yaml: tools.{request.spec.tool_id}", message)])
        return await self._transport.send(request.spec, request.arguments, request.call)


def _finish(
    context: TurnContext, flow_id: FlowId, tool: Tool, arguments: JsonObject, result: ToolResult
) -> ToolResult:
    match result:
        case ToolData():
            status = "ok"
        case ToolError(category):
            status = category.value
        case UnknownOutcome():
            status = "unknown"
    tool_id = tool.spec.tool_id
    context.log.tools.append(ToolUsed(tool_id, arguments, status))
    context.log.event("tool_finished", tool_id=tool_id, flow_id=flow_id, status=status)
    context.log.signal("pex", SignalType.TOOL_CALL, flow_id, tool_id=tool_id, status=status)
    return result


def _bad_input(tool: Tool, mistake: str) -> ToolError:
    _log.warning("A tool's input does not fit its schema.", tool=tool.spec.tool_id, mistake=mistake)
    return ToolError(FailureCategory.VALIDATION_ERROR, f"{tool.spec.name} cannot work with these values.")
