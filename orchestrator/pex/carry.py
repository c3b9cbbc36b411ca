"""One tool call of a flow, from its arguments to its result: guardrails, the user's yes, approval, the call.

The same for direct mode and for skills; where arguments come from is their business.
"""

from __future__ import annotations

from typing import TypeAlias

from orchestrator.dialogue.ambiguity import Level
from orchestrator.pex.approve import hold_for_approval
from orchestrator.pex.candidate import Candidate, drop_candidate, fingerprint, write_candidate
from orchestrator.pex.choices import Choices
from orchestrator.pex.ending import NeedsInput, Parked
from orchestrator.pex.envelope import ToolData, ToolError
from orchestrator.pex.execution import Execution
from orchestrator.pex.gate import find_bound_exceeded
from orchestrator.pex.guarded import guard_arguments
from orchestrator.pex.guardrails import Rejected
from orchestrator.pex.toolbox import Tool
from orchestrator.pex.unknown import settle_unknown
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import JsonObject

Carried: TypeAlias = ToolData | ToolError | Rejected | NeedsInput | Parked


async def carry(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
) -> Carried:
    """Call a tool, unless somebody has to say yes first.

    Args:
        run: of the flow.
        policy: of the flow.
        tool: one of the flow's.
        arguments: fit or unfit, as they were gathered or written.
        confirmed: the candidate that the user has agreed to, if this is its call.
    """
    if confirmed is None:
        guarded = guard_arguments(run, tool, arguments, policy.entities(run))
        if isinstance(guarded, Rejected):
            return guarded
        arguments = guarded
        if run.flow.spec.confirm and not tool.spec.idempotent:
            return ask_to_confirm(run, policy, tool, arguments)
    if not tool.spec.idempotent and run.world.state.ambiguity.blocks(run.flow.flow_id):
        return NeedsInput()
    cause = run.gated.get(tool.spec.tool_id)
    if cause is None:
        cause = find_bound_exceeded(tool.spec, {**run.data, **arguments})
    if cause is not None:
        parked = hold_for_approval(run, tool, arguments, cause)
        if parked is not None:
            return parked
    return await _call(run, policy, tool, arguments, again=confirmed is not None and confirmed.again)


def make_candidate(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, *, confirmed: bool = False
) -> Candidate:
    """The call as it is shown to the user, with what is still needed after the yes."""
    return Candidate(
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        data=policy.keep(run),
        slots=fingerprint(run.flow),
        confirmed=confirmed,
    )


def ask_to_confirm(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Show what is about to be done and wait for a yes (AM-3)."""
    write_candidate(run.flow, make_candidate(run, policy, tool, arguments))
    run.world.findings[run.flow.flow_id] = run.data
    run.world.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=run.flow.flow_id,
        turn_id=run.world.turn_id,
        metadata={"about": "candidate", "shown": policy.summary(run, arguments)},
    )
    return NeedsInput()


async def _call(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, *, again: bool
) -> ToolData | ToolError | NeedsInput:
    result = await run.tools.call(run.world, run.flow.flow_id, tool, arguments, again=again)
    if isinstance(result, UnknownOutcome):
        result = await settle_unknown(run, policy, tool, arguments, result)
    if isinstance(result, ToolData):
        run.take(tool.spec.tool_id, result.data)
        if not tool.spec.idempotent:
            drop_candidate(run.flow)
            policy.note_effect(run, tool, arguments, result.data)
    return result
