"""Record, resolve and undo the side effects of calls (RT-9, RT-12).

A compensation, which the tool declares, is an ordinary call, which may wait for a required approval.
"""

from functools import partial

from orchestrator.dialogue.lifecycle import FAILED
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import UnknownOutcome as AskToRepeat
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.pex.calls.consent import ask, hold_for_approval
from orchestrator.pex.choices import Choices, is_short
from orchestrator.pex.execution import Execution, GaveUp, NeedsInput, Parked
from orchestrator.saying import Told, say
from orchestrator.tools.toolbox import (
    Tool,
    ToolAccepted,
    ToolAnswer,
    ToolData,
    ToolError,
    make_effect,
    write_envelope,
)
from orchestrator.tools.trifecta import find_cause
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import FlowId, JsonObject


def note_effect(
    run: Execution,
    policy: Choices,
    tool: Tool,
    arguments: JsonObject,
    data: JsonObject | None,
    *,
    awaited: bool = False,
) -> None:
    """Record a call's side effect, replacing an earlier note about the same call.

    `data`: the call's result, or None if the outcome is unknown. `awaited`: True if the result comes later.
    """
    known = data is not None
    open_as = EffectStatus.AWAITED if awaited else EffectStatus.UNKNOWN
    note = EffectNote(
        tool_id=tool.spec.tool_id,
        flow_id=run.flow.flow_id,
        slots=run.flow.values(),
        arguments=arguments,
        summary=_summarize(run, policy, tool, data or {}),
        status=EffectStatus.FINISHED if known else open_as,
        compensation=tool.spec.compensation if known else None,
        turn_id=run.context.ids.turn_id,
        result=_needed_to_undo(run, tool, data or {}),
        fingerprint=make_effect(run.context, run.flow.flow_id, tool, arguments).fingerprint,
    )
    for earlier in _undone_by(run, tool, arguments) if known else ():
        earlier.mark_undone()  # a separate task undid the side effect, for example "cancel my booking"
    run.context.state.note_effect(note)


def find_undone(run: Execution, tool: Tool, arguments: JsonObject) -> str | None:
    """Return the fingerprint of the side effect that a call undoes, or None."""
    return next((note.fingerprint for note in _undone_by(run, tool, arguments) if note.fingerprint), None)


def _undone_by(run: Execution, tool: Tool, arguments: JsonObject) -> list[EffectNote]:
    """Return the side effects still in place that a call of this tool with these arguments would undo."""
    return [
        note
        for note in run.context.state.effects
        if note.compensation == tool.spec.tool_id
        and note.stands
        and (inputs := inputs_to_undo(tool, note))
        and inputs.items() <= arguments.items()
    ]


def inputs_to_undo(tool: Tool, note: EffectNote) -> JsonObject:
    """Return the inputs for a compensation, from the original call's result, arguments and slots."""
    known = {**note.slots, **note.arguments, **note.result}
    return {name: known[name] for name in tool.inputs if name in known}


def _summarize(run: Execution, policy: Choices, tool: Tool, data: JsonObject) -> Told:
    """Return a summary of a call, with the tool's name if the flow has several tools with side effects."""
    changing = [other for other in run.own_tools if other.has_effect]
    if len(changing) > 1:
        return say("done_this", what=tool.spec.name, reference="")
    return policy.effect_summary(run, data)


def _needed_to_undo(run: Execution, tool: Tool, data: JsonObject) -> JsonObject:
    """Return the short values in a result that its compensation and the compensation's approval limits need."""
    undo = run.tools.find(tool.spec.compensation) if tool.spec.compensation is not None else None
    wanted = {*undo.inputs, *undo.spec.approval_above} if undo is not None else set[str]()
    return {name: value for name, value in data.items() if name in wanted and is_short(value)}


ROUNDS = 3  # maximum number of repetitions of a call that was not done, before asking the user


async def resolve_by_query(
    run: Execution,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    unknown: UnknownOutcome,
    *,
    compensates: str | None = None,
) -> ToolAnswer | None:
    """Query a call's status. Repeat a call that was not done, with the same idempotency key.

    A status query returns ``{"status": "done" | "not_done" | "unknown", "data": …}``, where `data` is the
    result of the original call. Return None if the outcome stays unknown. `compensates`: the fingerprint of the
    side effect that the call undoes, or None.
    """
    context = run.context
    for _ in range(ROUNDS):
        answer = await query_status(run, flow_id, tool, arguments, unknown.idempotency_key)
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


async def query_status(
    run: Execution, flow_id: FlowId, tool: Tool, arguments: JsonObject, key: str
) -> JsonObject:
    """Call the tool's status query.

    Return an empty object if the tool has no status query or the query fails.
    """
    query_id = tool.spec.status_query
    query = run.tools.find(query_id) if query_id is not None else None
    if query is None:
        return {}
    known = {"idempotency_key": key, **arguments}
    inputs = {name: known[name] for name in query.inputs if name in known}
    result = await run.tools.call(run.context, flow_id, query, inputs)
    return result.data if isinstance(result, ToolData) else {}


def ask_what_to_do(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Report the unknown outcome, and ask the user whether to repeat the call."""
    flow_id = run.flow.flow_id
    note_effect(run, policy, tool, arguments, None)
    run.context.tell(NoticeKind.UNKNOWN_OUTCOME, flow_id=flow_id)
    return ask(run, policy, tool, arguments, partial(AskToRepeat, what=tool.spec.name), again=True)


async def undo_first(run: Execution) -> Parked | GaveUp | None:
    """Undo the side effects of the flows in `progress.undo_first`.

    Return None if all are undone, or `Parked` if an undo waits for approval. If an undo fails, report the failure
    to the user, end the flow and return `GaveUp`.
    """
    done = run.flow.progress.undo_first
    for note in [note for note in run.context.state.effects if note.flow_id in done and note.stands]:
        outcome = await _undo(run, note)
        if isinstance(outcome, Parked):
            return outcome
        if outcome is not None:
            run.context.tell(NoticeKind.FAILED, message=outcome, category="compensation")
            run.context.state.stack.invalidate(run.flow, FAILED)
            return GaveUp()
        run.context.tell(NoticeKind.UNDONE, summary=note.summary)
    run.flow.progress.undo_before(())
    return None


async def _undo(run: Execution, note: EffectNote) -> Parked | Told | None:
    """Undo one side effect. Return None on success, or why the undo waits or failed."""
    tool = run.tools.find(note.compensation) if note.compensation is not None else None
    if tool is None:
        return say("undo_impossible")
    inputs = inputs_to_undo(tool, note)
    known = {**note.slots, **note.arguments, **note.result}
    cause = find_cause(tool.spec, [], run.context.state.intake.labels, known)
    if cause is not None and (parked := hold_for_approval(run, tool, inputs, cause)) is not None:
        return parked
    return await _call(run, note, tool, inputs)


async def _call(run: Execution, note: EffectNote, tool: Tool, inputs: JsonObject) -> Told | None:
    undone = note.fingerprint or None
    outcome = await run.tools.call(run.context, note.flow_id, tool, inputs, compensates=undone)
    if isinstance(outcome, UnknownOutcome):
        answer = await resolve_by_query(run, note.flow_id, tool, inputs, outcome, compensates=undone)
        outcome = answer or outcome
    match outcome:
        case ToolData():
            note.mark_undone()
            return None
        case ToolError(_, message):
            return message
        case ToolAccepted():  # `domain check` rejects compensations whose results come later
            return say("undo_under_way", tool=tool.spec.name)
        case NotBegun():
            return say("undo_stopped", tool=tool.spec.name)
        case UnknownOutcome():
            return say("undo_unknown", tool=tool.spec.name)
