"""Guardrails on the way to a tool: inputs that take code get only what was judged and written anew (PX-10)."""

from __future__ import annotations

from typing import TypeAlias

from orchestrator.dialogue.ambiguity import Level
from orchestrator.pex.calls.approval import hold_for_approval
from orchestrator.pex.calls.candidate import (
    Candidate,
    drop_candidate,
    fingerprint,
    write_candidate,
)
from orchestrator.pex.calls.unknown_outcome import settle_unknown
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.tools.guardrails import Entities, Rejected, SqlRules, apply_guardrails
from orchestrator.tools.toolbox import Tool, ToolData, ToolError
from orchestrator.tools.trifecta import find_bound_exceeded
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import JsonObject


def guard_arguments(
    run: Execution, tool: Tool, arguments: JsonObject, entities: Entities | None
) -> JsonObject | Rejected:
    """The arguments with approved code in place of what was written, or the first rejection."""
    guarded = dict(arguments)
    for one in tool.guarded:
        code = arguments.get(one.name)
        if not isinstance(code, str):
            continue
        verdict = apply_guardrails(
            code,
            one.language,
            entities,
            python=run.tools.python_rules,
            sql=SqlRules(statements=one.statements),
        )
        if isinstance(verdict, Rejected):
            why = f"{verdict.category.value}: {verdict.message}"
            run.context.log.failed_check("pex", "guardrail", why, run.flow.flow_id)
            return verdict
        guarded[one.name] = verdict.code
    return guarded


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
    if not tool.spec.idempotent and run.context.changes.state.ambiguity.blocks(run.flow.flow_id):
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
    run.context.changes.findings[run.flow.flow_id] = run.data
    run.context.changes.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=run.flow.flow_id,
        turn_id=run.context.ids.turn_id,
        metadata={"about": "candidate", "shown": policy.summary(run, arguments)},
    )
    return NeedsInput()


async def _call(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, *, again: bool
) -> ToolData | ToolError | NeedsInput:
    result = await run.tools.call(run.context, run.flow.flow_id, tool, arguments, again=again)
    if isinstance(result, UnknownOutcome):
        result = await settle_unknown(run, policy, tool, arguments, result)
    if isinstance(result, ToolData):
        run.take(tool.spec.tool_id, result.data)
        if not tool.spec.idempotent:
            drop_candidate(run.flow)
            policy.note_effect(run, tool, arguments, result.data)
    return result
