"""Describe the side effect of a non-idempotent call, for the journal and the ledger (RT-9, RT-10)."""

from orchestrator.context import TurnContext
from orchestrator.tools.toolbox import Tool, ToolAccepted, ToolData, ToolError, read_envelope
from orchestrator.turns.effect import Effect, LedgerStatus, fingerprint_effect
from orchestrator.types import FlowId, Json, JsonObject, is_object


def make_effect(
    context: TurnContext,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    *,
    again: bool = False,
    compensates: str | None = None,
) -> Effect:
    """Describe a call's side effect. A re-planned step counts as the same flow instance."""
    flow = context.state.stack.get(flow_id)
    instance = f"{flow.plan_id}:{flow.dact}" if flow is not None and flow.plan_id is not None else flow_id
    return Effect(
        fingerprint=fingerprint_effect(tool.spec.tool_id, arguments, instance, defaults=_defaults(tool)),
        flow_id=flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        slots={} if flow is None else flow.values(),
        judge=classify_effect,
        again=again,
        compensates=compensates,
    )


def classify_effect(envelope: Json) -> LedgerStatus:
    """Return the side effect's status, from the result of a finished call."""
    result = read_envelope(envelope)
    match result:
        case ToolData():
            return LedgerStatus.DONE
        case ToolAccepted():
            return LedgerStatus.AWAITED
        case ToolError(undecided=undecided):
            return LedgerStatus.UNKNOWN if undecided else LedgerStatus.FAILED


def _defaults(tool: Tool) -> JsonObject:
    properties: JsonObject = tool.spec.input_schema.get("properties", {})
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if is_object(schema) and "default" in schema
    }
