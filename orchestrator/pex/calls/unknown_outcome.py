"""A call that may or may not have had its effect: the tool's own status query decides, else the user (RT-9)."""

from __future__ import annotations

from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.pex.calls.candidate import Candidate, fingerprint, write_candidate
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput
from orchestrator.tools.runner import ToolRunner, make_effect, note_unknown
from orchestrator.tools.toolbox import Tool, ToolData, ToolError, write_envelope
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import FlowId, JsonObject

ROUNDS = 3
"""How often a call that was not done is made again before the user is asked."""


async def settle_unknown(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, unknown: UnknownOutcome
) -> ToolData | ToolError | NeedsInput:
    """Find out what happened, and do it if it was not done; else ask."""
    settled = await settle_by_query(run.context, run.tools, run.flow.flow_id, tool, arguments, unknown)
    return settled or _ask_what_to_do(run, policy, tool, arguments)


async def settle_by_query(
    context: TurnContext,
    tools: ToolRunner,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    unknown: UnknownOutcome,
    *,
    compensates: str | None = None,
) -> ToolData | ToolError | None:
    """Ask the tool's status query; what was surely not done is done with the same idempotency key.

    A status query answers ``{"status": "done" | "not_done" | "unknown", "data": …}``, where `data`
    is what the call itself would have returned. None: nobody knows.
    """
    for _ in range(ROUNDS):
        answer = await _query_status(context, tools, flow_id, tool, arguments, unknown)
        status = None if answer is None else answer.get("status")
        if answer is not None and status == "done":
            result = ToolData(answer["data"])
            request: JsonObject = {"tool_id": tool.spec.tool_id, "arguments": arguments}
            effect = make_effect(context, flow_id, tool, arguments, compensates=compensates)
            await context.journal.settle(unknown, "tool", request, write_envelope(result), effect)
            return result
        if status != "not_done":
            return None
        outcome = await tools.call(context, flow_id, tool, arguments, again=True, compensates=compensates)
        if not isinstance(outcome, UnknownOutcome):
            return outcome
        unknown = outcome
    return None


async def _query_status(
    context: TurnContext,
    tools: ToolRunner,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    unknown: UnknownOutcome,
) -> JsonObject | None:
    query_id = tool.spec.status_query
    query = tools.find(query_id) if query_id is not None else None
    if query is None:
        return None
    known = {"idempotency_key": unknown.idempotency_key, **arguments}
    inputs = {name: known[name] for name in query.inputs if name in known}
    result = await tools.call(context, flow_id, query, inputs)
    return result.data if isinstance(result, ToolData) else None


def _ask_what_to_do(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Say what is not known, and do it again only after a yes."""
    context, flow = run.context, run.flow
    summary = policy.summarise(run, tool, {})
    note_unknown(context, make_effect(context, flow.flow_id, tool, arguments), summary)
    context.changes.remark(RemarkKind.UNKNOWN_OUTCOME, flow_id=flow.flow_id)
    write_candidate(
        flow,
        Candidate(
            tool_id=tool.spec.tool_id,
            arguments=arguments,
            data=policy.keep(run),
            slots=fingerprint(flow),
            again=True,
        ),
    )
    context.changes.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=flow.flow_id,
        turn_id=context.ids.turn_id,
        options=[
            Option("Do it again", "confirm", {"flow_id": flow.flow_id}),
            Option("Leave it", "deny", {"flow_id": flow.flow_id}),
        ],
        metadata={"about": "unknown", "what": tool.spec.name, "shown": policy.summary(run, arguments)},
    )
    return NeedsInput()
