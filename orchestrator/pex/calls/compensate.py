"""Undo side effects with the compensation that the tool declares (RT-12).

A compensation is an ordinary call, which may wait for a required approval.
"""

from orchestrator.dialogue.lifecycle import FAILED
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.records import EffectNote
from orchestrator.pex.calls.consent import hold_for_approval
from orchestrator.pex.calls.effects import inputs_to_undo, resolve_by_query
from orchestrator.pex.execution import Execution, GaveUp, Parked
from orchestrator.saying import Told, say
from orchestrator.tools.toolbox import Tool, ToolAccepted, ToolData, ToolError
from orchestrator.tools.trifecta import find_cause
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import JsonObject


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
