"""A call that may or may not have had its effect: the tool's own status query decides, else the user (RT-9)."""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level
from orchestrator.pex.candidate import Candidate, fingerprint, write_candidate
from orchestrator.pex.ending import NeedsInput
from orchestrator.pex.envelope import ToolData, ToolError, write_envelope
from orchestrator.pex.execution import Execution
from orchestrator.pex.toolbox import Tool
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import JsonObject
from orchestrator.world.remark import RemarkKind


async def settle_unknown(
    run: Execution, tool: Tool, arguments: JsonObject, unknown: UnknownOutcome
) -> ToolData | ToolError | NeedsInput:
    """Find out what happened without repeating the call.

    A status query answers ``{"status": "done" | "not_done" | "unknown", "data": …}``, where `data`
    is what the call itself would have returned.
    """
    answer = await _query_status(run, tool, arguments, unknown)
    request: JsonObject = {"tool_id": tool.spec.tool_id, "arguments": arguments}
    if answer is not None and answer.get("status") == "done":
        result = ToolData(answer["data"])
        await run.world.steps.settle(unknown.key, "tool", request, write_envelope(result))
        return result
    if answer is not None and answer.get("status") == "not_done":
        again = await run.tools.call(run.world, run.flow.flow_id, tool, arguments)
        if not isinstance(again, UnknownOutcome):
            return again
    return _ask_what_to_do(run, tool, arguments)


async def _query_status(
    run: Execution, tool: Tool, arguments: JsonObject, unknown: UnknownOutcome
) -> JsonObject | None:
    query_id = tool.spec.status_query
    query = run.tools.find(query_id) if query_id is not None else None
    if query is None:
        return None
    known = {"idempotency_key": unknown.idempotency_key, **arguments}
    inputs = {name: known[name] for name in query.inputs if name in known}
    result = await run.tools.call(run.world, run.flow.flow_id, query, inputs)
    return result.data if isinstance(result, ToolData) else None


def _ask_what_to_do(run: Execution, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Say that the outcome is not known and try again only after a yes."""
    run.world.remark(RemarkKind.UNKNOWN_OUTCOME, flow_id=run.flow.flow_id)
    candidate = Candidate(
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        data={},
        slots=fingerprint(run.flow),
    )
    write_candidate(run.flow, candidate)
    run.world.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=run.flow.flow_id,
        turn_id=run.world.turn_id,
        metadata={"about": "retry"},
    )
    return NeedsInput()
