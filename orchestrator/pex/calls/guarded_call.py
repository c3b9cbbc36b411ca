"""Calls the tools of a flow in order, each at most once (PX-7), and each unless something forbids it: guardrails, the
user's yes, an approval (PX-10, PX-17).
"""

from typing import TypeAlias

from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.errors import FailureCategory
from orchestrator.pex.calls.consent import (
    DOUBTED,
    Candidate,
    ask,
    ask_to_confirm,
    drop_candidate,
    hold_for_approval,
    make_candidate,
    read_candidate,
)
from orchestrator.pex.calls.effects import find_out, find_undone, note_effect
from orchestrator.pex.choices import Arguments, Choice, Choices, NothingFound, Unfed
from orchestrator.pex.execution import Ending, Execution, Failed, NeedsInput, Parked
from orchestrator.tools.guardrails.apply import apply_guardrails
from orchestrator.tools.guardrails.verdict import ApprovedSql, Rejected, SqlRules
from orchestrator.tools.toolbox import Tool, ToolAnswer, ToolData, ToolError
from orchestrator.tools.trifecta import find_cause
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import JsonObject

GuardedAnswer: TypeAlias = ToolAnswer | Rejected | NeedsInput | Parked


async def call_in_order(run: Execution, policy: Choices) -> Ending | None:
    """Call the flow's tools; None when all have answered."""
    candidate = read_candidate(run.context.changes.state, run.flow)
    confirmed = candidate if candidate is not None and candidate.confirmed else None
    if confirmed is not None:
        run.data.update(confirmed.data)
    for use, tool in zip(run.flow.spec.tools, run.own_tools, strict=True):
        if confirmed is not None and use.tool_id != confirmed.tool_id:
            continue  # it ran before the candidate was made
        agreed = confirmed if confirmed is not None and confirmed.tool_id == use.tool_id else None
        gathered = Arguments(agreed.arguments) if agreed is not None else policy.arguments(run, use, tool)
        if not isinstance(gathered, Arguments):
            return _without_arguments(run, policy, gathered)
        answer = await call_guarded(run, policy, tool, gathered.values, agreed)
        ending = _end(tool, answer, is_agreed=agreed is not None)
        if ending is not None:
            return ending
        if agreed is not None:
            confirmed = None
    return None


def _end(tool: Tool, answer: GuardedAnswer, *, is_agreed: bool) -> Ending | None:
    """Read the end of the execution from what a call came to; None to go on with the next tool.

    An alternative is looked at where a yes came before the call, since another one will come before the next.
    """
    match answer:
        case ToolData():
            return None
        case ToolError() as error:
            retryable = error.retryable and tool.spec.idempotent
            alternative = error.alternative if is_agreed else {}
            return Failed(error.category, error.message, retryable=retryable, alternative=alternative)
        case Rejected(_, message):
            return Failed(FailureCategory.VALIDATION_ERROR, message)
        case NeedsInput() | Parked() as waiting:
            return waiting


def _without_arguments(
    run: Execution, policy: Choices, gathered: Choice | NothingFound | Unfed
) -> NeedsInput | Failed:
    match gathered:
        case Choice():
            return _ask_to_choose(run, policy, gathered)
        case NothingFound():
            return Failed(FailureCategory.NOT_FOUND, "I found nothing that fits.")
        case Unfed(name):
            run.context.log.failed_check(
                "pex", "arguments", f"Nothing gives the input {name!r}.", run.flow.flow_id
            )
            return Failed(FailureCategory.VALIDATION_ERROR, "I do not have what this task needs.")


def _ask_to_choose(run: Execution, policy: Choices, choice: Choice) -> NeedsInput:
    """Offer the rows as options for the slot that they would fill (partial ambiguity)."""
    rows = choice.rows[: policy.most_choices]
    about: JsonObject = {"flow_id": run.flow.flow_id, "slot": choice.slot}
    options = [
        Option(policy.label(run, row), "fill_slot", {**about, "value": row[choice.name]}) for row in rows
    ]
    run.context.changes.findings[run.flow.flow_id] = run.data
    run.context.changes.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=run.flow.flow_id,
        slot=choice.slot,
        candidates=[row[choice.name] for row in rows],
        options=options,
        turn_id=run.context.ids.turn_id,
        metadata={"about": "rows"},
    )
    return NeedsInput()


async def call_guarded(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
) -> GuardedAnswer:
    """Call a tool, unless somebody has to say yes first.

    Args:
        run: of the flow.
        policy: of the flow.
        tool: one of the flow's.
        arguments: fit or unfit, as they were gathered or written.
        confirmed: the candidate that the user has agreed to, if this is its call.
    """
    if confirmed is None:
        guarded = _guard_arguments(run, policy, tool, arguments) if tool.guarded else arguments
        if isinstance(guarded, Rejected):
            return guarded
        arguments = guarded
        if _asks_first(run, tool):
            return ask_to_confirm(run, policy, tool, arguments)
    if tool.has_effect and run.context.changes.state.ambiguity.blocks(run.flow.flow_id):
        return NeedsInput()
    labels = run.context.changes.state.intake.labels
    cause = find_cause(tool.spec, run.own_tools, labels, {**run.data, **arguments})
    if cause is not None and (parked := hold_for_approval(run, tool, arguments, cause)) is not None:
        return parked
    again = confirmed is not None and confirmed.again
    undone = find_undone(run, tool, arguments) if run.context.changes.state.effects else None
    result = await run.tools.call(
        run.context, run.flow.flow_id, tool, arguments, again=again, compensates=undone
    )
    if isinstance(result, NotBegun):
        return ask(run, make_candidate(run, policy, tool, arguments, again=again), policy, about="stopped")
    if isinstance(result, UnknownOutcome):
        result = await find_out(run, policy, tool, arguments, result, undone)
    if isinstance(result, ToolData):
        run.answers.append((tool, result.data))
        run.data.update(result.data)
        _drop_used_candidate(run, tool, confirmed)
        if tool.has_effect:
            note_effect(run, policy, tool, arguments, result.data)
    return result


def _drop_used_candidate(run: Execution, tool: Tool, confirmed: Candidate | None) -> None:
    """Let a yes count for one call: after it, and after any call with an effect, nothing is agreed to."""
    if confirmed is not None or tool.has_effect:
        drop_candidate(run.flow)


def _asks_first(run: Execution, tool: Tool) -> bool:
    """Say whether a yes comes before this call.

    A flow with `confirm` asks before what changes something; where none of its tools does, before the last. One
    that a model alone has understood asks before what changes something, whatever is declared.
    """
    if tool.has_effect and (DOUBTED in run.flow.notes or _is_step_of_doubted(run)):
        return True
    if tool.spec.confirm or not run.flow.spec.confirm:
        return tool.spec.confirm
    tools = run.own_tools
    return tool.has_effect or (tool is tools[-1] and not any(one.has_effect for one in tools))


def _is_step_of_doubted(run: Execution) -> bool:
    plan = run.context.changes.state.stack.plan_of(run.flow) if run.flow.plan_id is not None else None
    return plan is not None and DOUBTED in plan.notes


def _guard_arguments(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject
) -> JsonObject | Rejected:
    """Put approved code in place of what was written, or give the first rejection.

    Code that comes with a query may name the columns of its result.
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
            python=run.tools.python_rules,
            sql=SqlRules(statements=one.statements),
        )
        if isinstance(verdict, Rejected):
            why = f"{verdict.category.value}: {verdict.message}"
            run.context.log.failed_check("pex", "guardrail", why, run.flow.flow_id)
            return verdict
        guarded[one.name] = verdict.code
        if isinstance(verdict, ApprovedSql) and entities is not None:
            entities = {**entities, "": verdict.columns}
    return guarded
