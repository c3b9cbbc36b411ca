"""Holds a call until somebody has approved exactly it (PX-17). Decisions come in as messages.

A grant is a note of the flow, for one call with these arguments under this plan and policy; using it
takes it away.
"""

from __future__ import annotations

import hashlib

import orjson

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import PendingApproval
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.domain.model import ToolSpec
from orchestrator.pex.execution import Execution, Parked
from orchestrator.tools.toolbox import Tool
from orchestrator.tools.trifecta import TRIFECTA_GATE, Cause
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, from_unix
from orchestrator.types import JsonObject, ToolId, new_id

NOTE = "granted"


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
    state.void_approvals(run.flow.flow_id)
    state.approvals.append(approval)
    state.stack.park(run.flow, context.now)
    context.changes.approvals.asked.append(_record(context, approval))
    put_to_user(context, approval)
    context.log.event(
        "approval_requested", approval_id=approval.approval_id, tool_id=tool.spec.tool_id, cause=cause.words
    )
    return Parked(approval.approval_id)


def put_to_user(context: TurnContext, approval: PendingApproval) -> None:
    """Say what waits for an approval, and why."""
    spec = context.world.domain.tools.get(approval.tool_id)
    approval.asked_turn = context.changes.state.turn
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
    flow.notes[NOTE] = {"approval_id": approval.approval_id, "call": bind(approval)}


def drop_grant(context: TurnContext, flow: BaseFlow) -> None:
    """Make a grant void, after a correction."""
    granted = flow.notes.pop(NOTE, None)
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
    return hashlib.blake2b(orjson.dumps(bound, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


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
    return hashlib.blake2b(orjson.dumps(rules, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def _use_grant(run: Execution, wanted: PendingApproval) -> bool:
    """Use the grant of exactly this call; a grant for anything else is void."""
    granted = run.flow.notes.pop(NOTE, None)
    if granted is None:
        return False
    fits = granted["call"] == bind(wanted)
    status = ApprovalStatus.USED if fits else ApprovalStatus.VOID
    run.context.changes.approvals.closed[granted["approval_id"]] = status
    return fits


def _record(context: TurnContext, approval: PendingApproval) -> ApprovalRecord:
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
