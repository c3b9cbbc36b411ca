"""Calls whose results come later. The flow waits, and resumes when the result arrives or is overdue (RT-32)."""

from orchestrator.dialogue.consent import drop_candidate
from orchestrator.dialogue.lifecycle import AWAITING_RESULT
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.progress import AwaitedCall, Candidate
from orchestrator.pex.calls.effects import ask_what_to_do, note_effect, resolve_by_query
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.tools.toolbox import (
    Tool,
    ToolAccepted,
    ToolAnswer,
    ToolData,
    ToolError,
    make_effect,
    read_envelope,
)
from orchestrator.tools.trifecta import carry_labels
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import JsonObject


def wait_for_result(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, accepted: ToolAccepted
) -> Parked:
    """Park the flow until the result arrives.

    A parked flow doesn't occupy a worker, and the user can change the subject.
    """
    flow, context = run.flow, run.context
    kept = AwaitedCall(accepted.call, tool.spec.tool_id, arguments, policy.keep(run), accepted.until)
    flow.progress.await_result(kept)
    drop_candidate(flow)
    if tool.has_effect:
        note_effect(run, policy, tool, arguments, None, awaited=True)
    context.state.stack.park(flow, context.now, AWAITING_RESULT)
    context.tell(
        NoticeKind.AWAITING, flow_id=flow.flow_id, what=tool.spec.name, message=accepted.message, again=False
    )
    context.log.event(
        "result_awaited",
        tool_id=tool.spec.tool_id,
        flow_id=flow.flow_id,
        reference=accepted.reference,
        until=accepted.until,
    )
    return Parked()


async def find_out(
    run: Execution,
    policy: Choices,
    tool: Tool,
    arguments: JsonObject,
    unknown: UnknownOutcome,
    compensates: str | None,
) -> ToolAnswer | NeedsInput:
    """Resolve an unknown outcome by querying the tool's status.

    If the status is unknown, wait for the result if the tool may have accepted the call; otherwise, ask the user.
    """
    flow_id, spec = run.flow.flow_id, tool.spec
    answer = await resolve_by_query(run, flow_id, tool, arguments, unknown, compensates=compensates)
    if answer is not None:
        return answer
    if spec.later is None:
        return ask_what_to_do(run, policy, tool, arguments)
    name = make_effect(run.context, flow_id, tool, arguments).fingerprint
    key, look_in_s = unknown.idempotency_key, spec.later.first_look_s
    return await run.tools.expect_result(run.context, spec, key, name, look_in_s)


def find_awaited(run: Execution, confirmed: Candidate | None) -> AwaitedCall | None:
    """Return the accepted call if its result has arrived or is overdue, or None.

    Restore the data that was stored with the call. If a confirmed repetition replaces the call, stop waiting for its
    result and return None.
    """
    awaited = run.flow.progress.awaits
    if awaited is None or (awaited.answer is None and not awaited.expired):
        return None
    if awaited.answer is None and confirmed is not None:
        run.flow.progress.await_result(None)
        return None
    run.data.update(awaited.data)
    return awaited


def continue_awaited(
    run: Execution, policy: Choices, tool: Tool, awaited: AwaitedCall
) -> ToolData | ToolError | NeedsInput:
    """Process the result of an accepted call. If it is overdue or undecided, ask the user what to do."""
    if awaited.answer is None:
        return ask_what_to_do(run, policy, tool, awaited.arguments)
    run.flow.progress.await_result(None)
    result = read_envelope(awaited.answer)
    assert not isinstance(result, ToolAccepted)
    output = result.data if isinstance(result, ToolData) else None
    state = run.context.state
    carry_labels(state, tool.spec, run.flow.flow_id, output)
    if isinstance(result, ToolError) and result.undecided:
        return ask_what_to_do(run, policy, tool, awaited.arguments)
    if output is None:
        state.forget_call(make_effect(run.context, run.flow.flow_id, tool, awaited.arguments).fingerprint)
        return result
    run.keep(tool, output)
    if tool.has_effect:
        note_effect(run, policy, tool, awaited.arguments, output)
    return result
