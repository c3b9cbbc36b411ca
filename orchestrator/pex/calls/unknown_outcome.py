"""Finds out about a call that may have had its effect: by the tool's status query, else from the user (RT-9)."""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Option
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.pex.calls.candidate import ask, make_candidate
from orchestrator.pex.calls.effects import note_effect
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput
from orchestrator.tools.effects import make_effect
from orchestrator.tools.toolbox import Tool, ToolAnswer, ToolData, write_envelope
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import FlowId, JsonObject

ROUNDS = 3  # how often a call that was not done is made again before the user is asked


async def find_out(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, unknown: UnknownOutcome
) -> ToolAnswer | NeedsInput:
    """Find out what happened, and do it if it was not done; else ask."""
    answer = await settle_by_query(run, run.flow.flow_id, tool, arguments, unknown)
    return answer or _ask_what_to_do(run, policy, tool, arguments)


async def settle_by_query(
    run: Execution,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    unknown: UnknownOutcome,
    *,
    compensates: str | None = None,
) -> ToolAnswer | None:
    """Ask the tool's status query; what was surely not done is done with the same idempotency key.

    A status query answers ``{"status": "done" | "not_done" | "unknown", "data": …}``, where `data`
    is what the call itself would have returned. None: nobody knows.
    """
    context = run.context
    for _ in range(ROUNDS):
        answer = await _query_status(run, flow_id, tool, arguments, unknown)
        if answer.get("status") == "done":
            result = ToolData(answer["data"])
            request: JsonObject = {"tool_id": tool.spec.tool_id, "arguments": arguments}
            effect = make_effect(context, flow_id, tool, arguments, compensates=compensates)
            await context.journal.settle(unknown, "tool", request, write_envelope(result), effect)
            return result
        if answer.get("status") != "not_done":
            return None
        outcome = await run.tools.call(context, flow_id, tool, arguments, again=True, compensates=compensates)
        if isinstance(outcome, NotBegun):
            return None
        if not isinstance(outcome, UnknownOutcome):
            return outcome
        unknown = outcome
    return None


async def _query_status(
    run: Execution, flow_id: FlowId, tool: Tool, arguments: JsonObject, unknown: UnknownOutcome
) -> JsonObject:
    """Call the status query; empty where there is none or it fails."""
    query_id = tool.spec.status_query
    query = run.tools.find(query_id) if query_id is not None else None
    if query is None:
        return {}
    known = {"idempotency_key": unknown.idempotency_key, **arguments}
    inputs = {name: known[name] for name in query.inputs if name in known}
    result = await run.tools.call(run.context, flow_id, query, inputs)
    return result.data if isinstance(result, ToolData) else {}


def _ask_what_to_do(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Say what is not known, and do it again only after a yes."""
    flow_id = run.flow.flow_id
    note_effect(run, policy, tool, arguments, None)
    run.context.changes.remark(RemarkKind.UNKNOWN_OUTCOME, flow_id=flow_id)
    return ask(
        run,
        make_candidate(run, policy, tool, arguments, again=True),
        policy,
        Option("Do it again", "confirm", {"flow_id": flow_id}),
        Option("Leave it", "deny", {"flow_id": flow_id}),
        about="unknown",
        what=tool.spec.name,
    )
