"""Has the user, or who else must, agree to one call before it is made (AM-3, PX-17).

A candidate is the call as it was displayed; an approval waits for a decision. Both are bound to exactly the call
that they name: tool, arguments, flow and the plan's revision. They live in the flow's notes.
"""

from dataclasses import dataclass, replace

import orjson

from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import GRANT, PendingApproval
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import ToolSpec
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.tools.toolbox import Tool
from orchestrator.tools.trifecta import TRIFECTA_GATE, Cause
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, from_unix
from orchestrator.types import JsonObject, ToolId, hash_json, new_id

CANDIDATE = "candidate"
DOUBTED = "doubted"
"""The note of a flow that a model alone has understood: what lasts is not done without a yes."""


@dataclass(slots=True)
class Candidate:
    """`data`: what earlier tools found that is still needed after the yes. `fingerprint`: what a yes names."""

    tool_id: ToolId
    arguments: JsonObject
    data: JsonObject
    fingerprint: str
    confirmed: bool = False
    again: bool = False
    """A yes means: although nobody knows whether it was done before (RT-9)."""


def fingerprint(
    state: DialogueState, flow: BaseFlow, tool_id: ToolId, arguments: JsonObject, *, again: bool = False
) -> str:
    """Digest all that a candidate is bound to: its call, its flow with its values, and the plan's revision.

    `again`: a yes to the call is none to making it once more.
    """
    plan = state.stack.plan_of(flow)
    revision = plan.revision if plan is not None else 0
    return hash_json([tool_id, arguments, flow.flow_id, revision, flow.values(), *([again] if again else [])])


def doubt(flow: BaseFlow) -> None:
    """Have the flow ask before it does anything that lasts, whatever its domain declares."""
    flow.notes[DOUBTED] = True


def read_candidate(state: DialogueState, flow: BaseFlow) -> Candidate | None:
    """Read the candidate; None when there is none, or when what it is bound to has changed."""
    body = flow.notes.get(CANDIDATE)
    if body is None:
        return None
    candidate = Candidate(**body)
    call = candidate.tool_id, candidate.arguments
    if candidate.fingerprint != fingerprint(state, flow, *call, again=candidate.again):
        del flow.notes[CANDIDATE]
        return None
    return candidate


def write_candidate(flow: BaseFlow, candidate: Candidate) -> None:
    flow.notes[CANDIDATE] = orjson.loads(orjson.dumps(candidate))


def confirm_candidate(state: DialogueState, flow: BaseFlow) -> bool:
    """Take the user's yes; False when there is nothing it could mean."""
    candidate = read_candidate(state, flow)
    if candidate is None:
        return False
    candidate.confirmed = True
    write_candidate(flow, candidate)
    return True


def drop_candidate(flow: BaseFlow) -> None:
    flow.notes.pop(CANDIDATE, None)


def make_candidate(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, **more: bool
) -> Candidate:
    """Describe the call as it is shown to the user, with what is still needed after the yes."""
    call, again = (tool.spec.tool_id, arguments), more.get("again", False)
    named = fingerprint(run.context.changes.state, run.flow, *call, again=again)
    return Candidate(*call, policy.keep(run), named, **more)


def ask_to_confirm(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Show what is about to be done and wait for a yes."""
    run.context.changes.findings[run.flow.flow_id] = run.data
    return ask(run, make_candidate(run, policy, tool, arguments), policy, about="candidate")


def ask(
    run: Execution, candidate: Candidate, policy: Choices, *options: Option, **about: str | None
) -> NeedsInput:
    """Put a candidate to the user; each reply that is offered names it. `about`: which question it is."""
    write_candidate(run.flow, candidate)
    named = {CANDIDATE: candidate.fingerprint}
    run.context.changes.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=run.flow.flow_id,
        turn_id=run.context.ids.turn_id,
        options=[replace(option, payload={**option.payload, **named}) for option in options],
        metadata={**about, **named, "shown": policy.summary(run, candidate.arguments)},
    )
    return NeedsInput()


def hold_for_approval(run: Execution, tool: Tool, arguments: JsonObject, cause: Cause) -> Parked | None:
    """Let the call through when it was granted, which uses the grant up; else let the flow wait."""
    context, state = run.context, run.context.changes.state
    plan = state.stack.plan_of(run.flow)
    approval = PendingApproval(
        approval_id=new_id("approval"),
        flow_id=run.flow.flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        asked_at=context.now,
        expires_at=context.now + context.world.domain.config.approvals.expires_s,
        plan_revision=plan.revision if plan is not None else 0,
        policy_version=version_policy(run, tool),
        turn_id=context.ids.turn_id,
        question=tool.spec.description or tool.spec.name,
        cause=cause.words,
        asked_turn=state.turn,
        operator_only=needs_operator(context, tool.spec),
    )
    if _use_grant(run, approval):
        return None
    if cause.of_gate:
        context.log.failed_check("pex", TRIFECTA_GATE, cause.words, run.flow.flow_id)
    state.ask_approval(approval)
    state.stack.park(run.flow, context.now)
    context.changes.approvals.asked.append(record_of(context, approval))
    put_to_user(context, approval)
    context.log.event(
        "approval_requested", approval_id=approval.approval_id, tool_id=tool.spec.tool_id, cause=cause.words
    )
    return Parked(approval.approval_id)


def put_to_user(context: TurnContext, approval: PendingApproval) -> None:
    """Say what waits for an approval, and why."""
    spec = context.world.domain.tools.get(approval.tool_id)
    approval.put(context.changes.state.turn)
    context.changes.remark(
        RemarkKind.APPROVAL,
        what=spec.name if spec is not None else approval.tool_id,
        cause=approval.cause,
        arguments=approval.arguments,
        flow_id=approval.flow_id,
        operator_only=approval.operator_only,
    )


def needs_operator(context: TurnContext, spec: ToolSpec) -> bool:
    """Say whether only an operator may grant a call of this tool."""
    return (spec.approval or context.world.domain.config.approvals.by) == "operator"


def grant(flow: BaseFlow, approval: PendingApproval) -> None:
    """Allow the one call that the approval was asked for."""
    flow.notes[GRANT] = {"approval_id": approval.approval_id, "call": bind(approval)}


def drop_consent(context: TurnContext, flow: BaseFlow) -> None:
    """Make void what was agreed to, after a correction: the candidate and the grant."""
    drop_candidate(flow)
    granted = flow.notes.pop(GRANT, None)
    if granted is not None:
        context.changes.approvals.closed[granted["approval_id"]] = ApprovalStatus.VOID


def bind(approval: PendingApproval) -> str:
    """Digest all that an approval is bound to."""
    bound = [
        approval.flow_id,
        approval.tool_id,
        approval.arguments,
        approval.plan_revision,
        approval.policy_version,
    ]
    return hash_json(bound)


def version_policy(run: Execution, tool: Tool) -> str:
    """Digest the rules under which the call is made: another release of them needs another approval."""
    spec = run.flow.spec
    rules = [
        spec.dax,
        spec.confirm,
        [[use.tool_id, dict(use.slot_mapping)] for use in spec.tools],
        tool.fingerprint,
        tool.spec.requires_approval,
        dict(tool.spec.approval_above),
        *(["operator"] if needs_operator(run.context, tool.spec) else []),
    ]
    return hash_json(rules, size=8)


def _use_grant(run: Execution, wanted: PendingApproval) -> bool:
    """Use the grant of exactly this call; a grant for anything else is void."""
    granted = run.flow.notes.pop(GRANT, None)
    if granted is None:
        return False
    fits = granted["call"] == bind(wanted)
    status = ApprovalStatus.USED if fits else ApprovalStatus.VOID
    run.context.changes.approvals.closed[granted["approval_id"]] = status
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
        cause=approval.cause,
        plan_revision=approval.plan_revision,
        policy_version=approval.policy_version,
        operator_only=approval.operator_only,
    )
