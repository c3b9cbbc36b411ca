"""Holds a call until somebody has approved exactly it (PX-17). Deciding is the Agent's uptake.

A grant is a note of the flow, for one call with these arguments; using it takes it away.
"""

from __future__ import annotations

import hashlib

import orjson

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import PendingApproval
from orchestrator.pex.ending import Parked
from orchestrator.pex.execution import Execution
from orchestrator.pex.toolbox import Tool
from orchestrator.types import JsonObject, ToolId, new_id
from orchestrator.world.remark import RemarkKind

NOTE = "granted"


def hold_for_approval(run: Execution, tool: Tool, arguments: JsonObject) -> Parked | None:
    """None when the call was granted, which uses the grant up; else the flow waits."""
    if run.flow.notes.pop(NOTE, None) == name_call(tool.spec.tool_id, arguments):
        return None
    world, state = run.world, run.world.state
    plan = state.stack.plan_of(run.flow)
    approval = PendingApproval(
        approval_id=new_id("approval"),
        flow_id=run.flow.flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        asked_at=world.now,
        expires_at=world.now + world.domain.config.approvals.expires_s,
        plan_revision=plan.revision if plan is not None else 0,
        policy_version=run.flow.spec.dax,
        turn_id=world.turn_id,
        question=tool.spec.description,
    )
    state.void_approvals(run.flow.flow_id)
    state.approvals.append(approval)
    state.stack.park(run.flow, world.now)
    world.remark(RemarkKind.APPROVAL, what=tool.spec.name, flow_id=run.flow.flow_id)
    world.event("approval_requested", approval_id=approval.approval_id, tool_id=tool.spec.tool_id)
    return Parked(approval.approval_id)


def grant(flow: BaseFlow, approval: PendingApproval) -> None:
    """Allow the one call that the approval was asked for."""
    flow.notes[NOTE] = name_call(approval.tool_id, approval.arguments)


def drop_grant(flow: BaseFlow) -> None:
    """A correction makes a grant void."""
    flow.notes.pop(NOTE, None)


def name_call(tool_id: ToolId, arguments: JsonObject) -> str:
    """A digest of a tool with its arguments."""
    body = orjson.dumps([tool_id, arguments], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(body, digest_size=16).hexdigest()
