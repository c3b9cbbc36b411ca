"""Request confirmations and approvals before a call (AM-3, PX-17). `dialogue.consent` stores them."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from orchestrator.context import TurnContext
from orchestrator.dialogue.consent import drop_candidate, fingerprint, propose, take_grant
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.progress import Candidate
from orchestrator.dialogue.questions import PendingCall, StoppedCall, UnknownOutcome
from orchestrator.dialogue.records import PendingApproval
from orchestrator.domain.model import ToolSpec
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.tools.toolbox import Tool
from orchestrator.tools.trifecta import TRIFECTA_GATE, Cause
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, from_unix
from orchestrator.types import Json, JsonObject, ToolId, hash_json, is_list, is_object, new_id


def make_candidate(
    run: Execution,
    policy: Choices,
    tool: Tool,
    arguments: JsonObject,
    *,
    agreed: bool = False,
    again: bool = False,
) -> Candidate:
    """Return the pending call, with the data that it needs after its confirmation."""
    named = fingerprint(run.context.state, run.flow, tool.spec.tool_id, arguments, again=again)
    return Candidate(tool.spec.tool_id, arguments, policy.keep(run), named, agreed, again)


def ask(
    run: Execution,
    policy: Choices,
    tool: Tool,
    arguments: JsonObject,
    question: Callable[..., PendingCall | StoppedCall | UnknownOutcome],
    *,
    again: bool = False,
) -> NeedsInput:
    """Present a pending call to the user. `question`: creates the question."""
    candidate = make_candidate(run, policy, tool, arguments, again=again)
    propose(run.flow, candidate)
    displayed = visible(tool.spec, arguments)
    asked = question(
        flow_id=run.flow.flow_id,
        candidate=candidate.fingerprint,
        shown=policy.summary(run, arguments),
        arguments=displayed,
        found=find_taken(run, displayed),
    )
    run.context.state.ambiguity.declare(asked)
    return NeedsInput()


def visible(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Return the arguments, without scalars that the tool's input schema marks as ``x-hidden``."""
    fields: dict[str, JsonObject] = spec.input_schema.get("properties") or {}
    return {
        name: value
        for name, value in arguments.items()
        if is_object(value) or is_list(value) or not fields.get(name, JsonObject()).get("x-hidden")
    }


SHORTEST_TAKEN = 4
"""Minimum length of a text that can be attributed to a result, in characters.

Shorter texts occur everywhere.
"""


def find_taken(run: Execution, arguments: JsonObject) -> tuple[str, ...]:
    """Return the names of arguments whose text comes from a tool result or a document instead of the user."""
    answers = list(_texts(run.data)) + [one for data in run.returned for one in _texts(data)]
    lines = run.context.state.history.lines
    said = [run.context.text, *(line["text"] for line in lines if line["role"] == "user")]
    return tuple(
        name
        for name, value in arguments.items()
        if any(
            len(text) >= SHORTEST_TAKEN
            and any(text.casefold() in answer.casefold() for answer in answers)
            and not any(text.casefold() in line.casefold() for line in said)
            for text in _texts(value)
        )
    )


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in cast("Iterable[Json]", value.values() if isinstance(value, dict) else value):
            yield from _texts(part)


def hold_for_approval(run: Execution, tool: Tool, arguments: JsonObject, cause: Cause) -> Parked | None:
    """Park the flow until the call is approved. For an approved call, consume the grant and return None."""
    context, state = run.context, run.context.state
    plan = state.stack.plan_of(run.flow)
    approval = PendingApproval(
        approval_id=new_id("approval"),
        flow_id=run.flow.flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        expires_at=context.now + context.world.domain.config.approvals.expires_s,
        plan_revision=plan.revision if plan is not None else 0,
        policy_version=version_policy(run, tool),
        question=tool.spec.description or tool.spec.name,
        cause=cause.told,
        found=find_taken(run, arguments),
        asked_turn=state.turn,
        operator_only=needs_operator(context, tool.spec),
    )
    if _use_grant(run, approval):
        return None
    if cause.of_gate:
        context.log.failed_check("pex", TRIFECTA_GATE, str(cause.told), run.flow.flow_id)
    request_approval(context, approval)
    state.stack.park(run.flow, context.now)
    present_to_user(context, approval)
    context.log.event(
        "approval_requested",
        approval_id=approval.approval_id,
        tool_id=tool.spec.tool_id,
        cause=str(approval.cause or ""),
    )
    return Parked()


def request_approval(context: TurnContext, approval: PendingApproval) -> None:
    """Add an approval to the state, and its record to the turn's changes."""
    context.state.ask_approval(approval)
    context.changes.approvals.asked.append(record_of(context, approval))


def present_to_user(context: TurnContext, approval: PendingApproval) -> None:
    spec = context.world.domain.tools.get(approval.tool_id)
    approval.put(context.state.turn)
    context.tell(
        NoticeKind.APPROVAL,
        what=spec.name if spec is not None else approval.tool_id,
        cause=approval.cause,
        arguments=approval.arguments if spec is None else visible(spec, approval.arguments),
        found=list(approval.found),
        flow_id=approval.flow_id,
        operator_only=approval.operator_only,
    )


def needs_operator(context: TurnContext, spec: ToolSpec) -> bool:
    return (spec.approval or context.world.domain.config.approvals.by) == "operator"


def drop_consent(context: TurnContext, flow: BaseFlow) -> None:
    """Invalidate the pending call and the grant after a correction."""
    drop_candidate(flow)
    granted = take_grant(flow)
    if granted is not None:
        context.changes.approvals.closed[granted.approval_id] = ApprovalStatus.VOID


def bind(approval: PendingApproval) -> str:
    """Return a digest of all data that an approval is bound to."""
    bound = [
        approval.flow_id,
        approval.tool_id,
        approval.arguments,
        approval.plan_revision,
        approval.policy_version,
    ]
    return hash_json(bound)


def version_policy(run: Execution, tool: Tool) -> str:
    """Return a digest of the call's rules. If a release changes the rules, the call needs a new approval."""
    spec = run.flow.spec
    rules = [
        spec.dact,
        spec.confirm,
        [[use.tool_id, dict(use.slot_mapping)] for use in spec.tools],
        tool.fingerprint,
        tool.spec.requires_approval,
        dict(tool.spec.approval_above),
        *(["operator"] if needs_operator(run.context, tool.spec) else []),
    ]
    return hash_json(rules, size=8)


def _use_grant(run: Execution, wanted: PendingApproval) -> bool:
    """Consume the flow's grant. Return True if it was for exactly this call; any other grant becomes void."""
    granted = take_grant(run.flow)
    if granted is None:
        return False
    fits = granted.call == bind(wanted)
    status = ApprovalStatus.USED if fits else ApprovalStatus.VOID
    run.context.changes.approvals.closed[granted.approval_id] = status
    return fits


def record_of(context: TurnContext, approval: PendingApproval) -> ApprovalRecord:
    return ApprovalRecord(
        approval_id=approval.approval_id,
        session_id=context.ids.session_id,
        turn_id=context.ids.turn_id,
        flow_id=approval.flow_id,
        tool_id=ToolId(approval.tool_id),
        fingerprint=bind(approval),
        arguments=approval.arguments,
        expires_at=from_unix(approval.expires_at),
        question=approval.question,
        cause=str(approval.cause or ""),
        plan_revision=approval.plan_revision,
        policy_version=approval.policy_version,
        operator_only=approval.operator_only,
    )
