"""System turns that run when an asynchronous tool result arrives or is due (RT-32).

Each turn checks the state first, so that duplicate and late results take effect only once.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.agent.modules import Modules
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.running import RunningTurn, Step
from orchestrator.agent.steps.archive import archive
from orchestrator.agent.steps.carry_out import carry_out
from orchestrator.agent.system_turns import commit_quietly, find_line
from orchestrator.dialogue.consent import drop_candidate
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.progress import AwaitedCall
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.domain.model import ToolSpec
from orchestrator.errors import FailureCategory
from orchestrator.pex.calls.effects import query_status
from orchestrator.pex.choices import is_short
from orchestrator.pex.execution import Failed
from orchestrator.saying import say
from orchestrator.telemetry import get_logger
from orchestrator.tools.toolbox import (
    ToolData,
    ToolError,
    check_result,
    classify_effect,
    read_envelope,
    write_envelope,
)
from orchestrator.turns.effect import OPEN, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import TurnCommit
from orchestrator.types import JsonObject, is_object

_log = get_logger(__name__)


async def accept_result(turn: RunningTurn, modules: Modules) -> tuple[Step, ...] | TurnCommit:
    """Return the steps that continue the flow or report a late result, or a commit if nothing is left to do."""
    given, flow = turn.work.input.payload, _find_flow(turn)
    note = _find_note(turn, given)
    answer = _read_outcome(given, modules)
    name, journal = given.get("fingerprint"), turn.context.journal
    entry = await find_line(turn.lease, journal, name) if name else None
    if answer is None and flow is not None:
        answer = await _look(turn, modules, flow)
    if answer is not None and entry is not None and entry.status in OPEN:
        status = classify_effect(answer)
        result = answer if status is LedgerStatus.DONE else None
        await journal.lane.resolve_effect(turn.lease, replace(entry, status=status, result=result))
    awaited = None if flow is None else flow.progress.awaits
    if flow is not None and awaited is not None:
        if awaited.answer is not None:
            return _end_quietly(turn, "the result is already known")
        if answer is None and await _waits_on(turn, modules, flow, awaited, entry):
            return _end_quietly(turn, "the call is still in progress")
        flow.progress.await_result(replace(awaited, answer=answer, expired=answer is None))
        return continue_with_result, carry_out, archive
    if answer is not None and note is not None:
        _update_note(turn, note, answer)
        return report_late_result, carry_out, archive
    return _end_quietly(turn, "no flow is waiting for this result")


def _find_flow(turn: RunningTurn) -> BaseFlow | None:
    call = turn.work.input.payload.get("call")
    flows = turn.context.state.stack.flows
    waits = (flow for flow in flows if (one := flow.progress.awaits) is not None and one.call == call)
    return next(waits, None)


def _find_note(turn: RunningTurn, given: JsonObject) -> EffectNote | None:
    """Return the note for this turn's call if its outcome is still awaited or unknown; otherwise, None."""
    unsettled = {EffectStatus.AWAITED, EffectStatus.UNKNOWN}
    named = [note for note in turn.context.state.effects if note.fingerprint == given.get("fingerprint")]
    return next((note for note in named if note.status in unsettled), None)


def _read_outcome(given: JsonObject, modules: Modules) -> JsonObject | None:
    """Return the turn's outcome as an enveloped tool result, or None if the turn has no outcome."""
    outcome, spec = given.get("outcome"), modules.domain.tools.get(given.get("tool_id", ""))
    if not is_object(outcome) or spec is None:
        return None
    if outcome.get("status") == "done":
        return _as_result(spec, outcome.get("data") or {})
    category = FailureCategory(outcome.get("category") or FailureCategory.SERVER_ERROR)
    return write_envelope(ToolError(category, outcome.get("message") or say("tool_not_done", tool=spec.name)))


def _as_result(spec: ToolSpec, data: JsonObject) -> JsonObject:
    """Return `data` as an enveloped tool result.

    If `data` doesn't match the schema, return an error with an unknown outcome.
    """
    mistake = check_result(spec, data)
    if mistake is None:
        return write_envelope(ToolData(data))
    _log.error("Could not use an asynchronous result.", tool=spec.tool_id, mistake=mistake)
    message = say("tool_bad_result", tool=spec.name)
    return write_envelope(ToolError(FailureCategory.SERVER_ERROR, message, undecided=True))


async def _look(turn: RunningTurn, modules: Modules, flow: BaseFlow) -> JsonObject | None:
    """Query the status of the flow's call. Return the enveloped result, or None if the result is still unknown."""
    awaited = flow.progress.awaits
    work = modules.pex.find_work(turn.context, flow)
    if awaited is None or isinstance(work, Failed):
        return None
    _, run = work
    tool = run.tools.find(awaited.tool_id)
    if tool is None or tool.spec.status_query is None:
        return None
    found = await query_status(run, flow.flow_id, tool, awaited.arguments, awaited.call)
    match found.get("status"):
        case "done":
            return _as_result(tool.spec, found.get("data") or {})
        case "not_done":
            message = found.get("message") or say("tool_not_done", tool=tool.spec.name)
            return write_envelope(ToolError(FailureCategory.SERVER_ERROR, message))
        case _:
            return None


async def _waits_on(
    turn: RunningTurn, modules: Modules, flow: BaseFlow, awaited: AwaitedCall, entry: LedgerEntry | None
) -> bool:
    """Schedule the next status check and return True.

    If the time limit has passed, mark the call as unknown and return False.
    """
    left_s = awaited.until - turn.context.now
    spec = modules.domain.tools[awaited.tool_id]
    work = modules.pex.find_work(turn.context, flow)
    if left_s > 0 and spec.later is not None and not isinstance(work, Failed):
        look_in_s = min(spec.later.poll_s or left_s, left_s)
        name = None if entry is None else entry.fingerprint
        await work[1].tools.expect_result(turn.context, spec, awaited.call, name, look_in_s)
        return True
    if entry is not None and entry.status in OPEN:
        unknown = replace(entry, status=LedgerStatus.UNKNOWN, result=None)
        await turn.context.journal.lane.resolve_effect(turn.lease, unknown)
    return False


def _update_note(turn: RunningTurn, note: EffectNote, answer: JsonObject) -> None:
    """Update the note about a call whose task was canceled, and report its outcome."""
    result, spec = read_envelope(answer), turn.context.world.domain.tools.get(note.tool_id)
    name = note.tool_id if spec is None else spec.name
    is_done = isinstance(result, ToolData)
    if is_done:
        settled = replace(
            note,
            status=EffectStatus.FINISHED,
            compensation=None if spec is None else spec.compensation,
            result={name: value for name, value in result.data.items() if is_short(value)},
        )
        turn.context.state.note_effect(settled)
    elif isinstance(result, ToolError) and not result.undecided:
        turn.context.state.forget_call(note.fingerprint)
    message = "" if is_done or not isinstance(result, ToolError) else result.message
    turn.context.tell(NoticeKind.LATE_RESULT, what=name, done=is_done, message=message)


def _end_quietly(turn: RunningTurn, what: str) -> TurnCommit:
    turn.context.state.take_back_turn()
    return commit_quietly(turn, {"result": what})


async def continue_with_result(turn: RunningTurn, modules: Modules) -> None:
    del modules
    state, flow = turn.context.state, _find_flow(turn)
    awaited = None if flow is None else flow.progress.awaits
    assert flow is not None
    assert awaited is not None
    state.ambiguity.resolve(flow_id=flow.flow_id)
    drop_candidate(flow)
    if awaited.expired:
        turn.context.tell(NoticeKind.RESULT_OVERDUE, flow_id=flow.flow_id)
    turn.context.log.event(
        "result_overdue" if awaited.expired else "result_arrived",
        tool_id=awaited.tool_id,
        flow_id=flow.flow_id,
    )
    state.stack.approve(flow, turn.context.now, reason="the call's result has arrived")
    turn.context.changes.carry_on = True


async def report_late_result(turn: RunningTurn, modules: Modules) -> None:
    """Repeat the open question after reporting on a call whose task was canceled."""
    del modules
    leave_open(turn.context)
