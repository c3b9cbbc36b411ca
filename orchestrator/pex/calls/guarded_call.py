"""Call a flow's tools in order, each at most once (PX-7).

Calls are subject to guardrails, confirmation and approval (PX-10, PX-17).
"""

from dataclasses import replace
from typing import TypeAlias

from orchestrator.dialogue.consent import drop_candidate, read_confirmed
from orchestrator.dialogue.progress import Candidate
from orchestrator.dialogue.questions import PendingCall, StoppedCall
from orchestrator.domain.guarding import GuardedInput, Language
from orchestrator.errors import FailureCategory
from orchestrator.pex.calls.consent import ask, hold_for_approval
from orchestrator.pex.calls.effects import find_undone, note_effect
from orchestrator.pex.calls.later import continue_awaited, find_awaited, find_out, wait_for_result
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed, NeedsInput, Parked, Query
from orchestrator.tools.guardrails.apply import apply_guardrails
from orchestrator.tools.guardrails.verdict import Category, RejectedCode
from orchestrator.tools.toolbox import Tool, ToolAccepted, ToolAnswer, ToolData, ToolError
from orchestrator.tools.trifecta import find_cause
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import JsonObject

REPARABLE = frozenset({Category.SYNTAX, Category.UNKNOWN_ENTITY, Category.NOT_ONE_STATEMENT, Category.EMPTY})
"""Mistakes in a query that can be repaired. Code that requests something forbidden is not repaired."""

GuardedAnswer: TypeAlias = ToolData | ToolError | RejectedCode | NeedsInput | Parked


async def call_in_order(run: Execution, policy: Choices) -> Ending | None:
    """Call the flow's tools in order. Return None if all succeed, or the ending of the first call that doesn't."""
    confirmed = read_confirmed(run.context.state, run.flow)
    if confirmed is not None:
        run.data.update(confirmed.data)
    awaited = None if run.flow.progress.awaits is None else find_awaited(run, confirmed)
    for use, tool in zip(run.flow.spec.tools, run.own_tools, strict=True):
        pending = awaited or confirmed
        if pending is not None and use.tool_id != pending.tool_id:
            continue  # the tool ran before the pending or accepted call
        agreed = confirmed if awaited is None else None
        if awaited is not None:
            answer = continue_awaited(run, policy, tool, awaited)
            awaited = None
        else:
            arguments = agreed.arguments if agreed is not None else policy.arguments(run, use, tool)
            if isinstance(arguments, NeedsInput | Failed):
                return arguments
            answer = await call_guarded(run, policy, tool, arguments, agreed)
            confirmed = None
        ending = _end(tool, answer, is_agreed=agreed is not None)
        if ending is not None:
            return ending
    return None


def _end(tool: Tool, answer: GuardedAnswer, *, is_agreed: bool) -> Ending | None:
    """Return the ending that follows from a call's result, or None to continue.

    An error's alternative inputs are used only after a confirmed call, because the user then confirms them, too.
    """
    match answer:
        case ToolData():
            return None
        case ToolError() as error:
            retryable = error.retryable and tool.spec.idempotent
            alternative = error.alternative if is_agreed else {}
            return Failed(error.category, error.message, retryable=retryable, alternative=alternative)
        case RejectedCode() as rejected:
            return Failed(FailureCategory.VALIDATION_ERROR, rejected.tell())
        case NeedsInput() | Parked() as waiting:
            return waiting


async def call_guarded(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
) -> GuardedAnswer:
    """Call a tool, unless a guardrail rejects the call or it still needs a confirmation or approval.

    `arguments`: not validated yet. `confirmed`: the pending call, if the user confirmed this call.
    """
    answer = await _call(run, policy, tool, arguments, confirmed)
    _note_query(run, tool, arguments, answer)
    return answer


def _note_query(run: Execution, tool: Tool, arguments: JsonObject, answer: GuardedAnswer) -> None:
    """Remember a read-only SQL query that ran or can be repaired, so that a repair can replace it (AG-6).

    Forget the last query if its failure can't be repaired, or if another tool returns results.
    """
    is_query = len(tool.guarded) == 1 and tool.guarded[0] == GuardedInput(tool.guarded[0].name, Language.SQL)
    if tool.has_effect or not is_query:
        if isinstance(answer, ToolData):
            run.query = None  # the results come from another tool
        return
    query = Query(tool, arguments, tool.guarded[0].name)
    match answer:
        case ToolData():
            run.query = query
        case RejectedCode(category, message, nearest, unknown) if category in REPARABLE:
            run.query = replace(query, fault=message, unknown=unknown, nearest=nearest)
        case ToolError(category, message) if category is FailureCategory.VALIDATION_ERROR:
            run.query = replace(query, fault=str(message))
        case _:
            run.query = None


async def _call(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
) -> GuardedAnswer:
    if confirmed is None:
        guarded = _guard_arguments(run, policy, tool, arguments) if tool.guarded else arguments
        if isinstance(guarded, RejectedCode):
            return guarded
        arguments = guarded
        if _asks_first(run, tool):
            run.context.changes.findings[run.flow.flow_id] = run.data
            return ask(run, policy, tool, arguments, PendingCall)
    if tool.has_effect and run.context.state.ambiguity.blocks(run.flow.flow_id):
        return NeedsInput()
    labels = run.context.state.intake.labels
    cause = find_cause(tool.spec, run.own_tools, labels, {**run.data, **arguments})
    if cause is not None and (parked := hold_for_approval(run, tool, arguments, cause)) is not None:
        return parked
    again = confirmed is not None and confirmed.again
    undone = find_undone(run, tool, arguments) if run.context.state.effects else None
    result = await run.tools.call(
        run.context, run.flow.flow_id, tool, arguments, again=again, compensates=undone
    )
    if isinstance(result, NotBegun):
        return ask(run, policy, tool, arguments, StoppedCall, again=again)
    if isinstance(result, UnknownOutcome):
        result = await find_out(run, policy, tool, arguments, result, undone)
    return _conclude(run, policy, tool, arguments, confirmed, result)


def _conclude(
    run: Execution,
    policy: Choices,
    tool: Tool,
    arguments: JsonObject,
    confirmed: Candidate | None,
    result: ToolAnswer | NeedsInput,
) -> GuardedAnswer:
    """Store a successful call's result and side effect, or park the flow if the result comes later."""
    if isinstance(result, ToolAccepted):
        return wait_for_result(run, policy, tool, arguments, result)
    if isinstance(result, ToolData):
        run.keep(tool, result.data)
        if confirmed is not None or tool.has_effect:
            drop_candidate(run.flow)  # a confirmation covers one call, and no call after a side effect
        if tool.has_effect:
            note_effect(run, policy, tool, arguments, result.data)
    return result


def _asks_first(run: Execution, tool: Tool) -> bool:
    """Return whether this call needs a confirmation. A tool with `confirm` always does.

    A flow with `confirm` asks before each side effect or, if no tool has a side effect, before the last tool.
    A flow that only a model recognized always asks before a side effect.
    """
    plan = run.context.state.stack.plan_of(run.flow) if run.flow.plan_id is not None else None
    is_doubted = run.flow.progress.doubted or (plan is not None and plan.progress.doubted)
    if tool.has_effect and is_doubted:
        return True
    if tool.spec.confirm or not run.flow.spec.confirm:
        return tool.spec.confirm
    tools = run.own_tools
    return tool.has_effect or (tool is tools[-1] and not any(one.has_effect for one in tools))


def _guard_arguments(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject
) -> JsonObject | RejectedCode:
    """Replace code with its approved form, or return the first rejection.

    Code that follows a query can use the columns of the query's result.
    """
    guarded, entities = dict(arguments), policy.entities(run)
    for one in tool.guarded:
        code = arguments.get(one.name)
        if not isinstance(code, str):
            continue
        verdict = apply_guardrails(
            code,
            one.language,
            entities,
            allowed_imports=run.tools.allowed_imports,
            statements=one.statements,
        )
        if isinstance(verdict, RejectedCode):
            why = f"{verdict.category.value}: {verdict.message}"
            run.context.log.failed_check("pex", "guardrail", why, run.flow.flow_id)
            return verdict
        guarded[one.name] = verdict.code
        if one.language is Language.SQL and entities is not None:
            entities = {**entities, "": verdict.columns}
    return guarded
