"""Approvals, bound to everything that they were requested for (PX-17)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.dialogue.consent import grant
from orchestrator.dialogue.records import PendingApproval
from orchestrator.dialogue.specification import ToolUse
from orchestrator.pex.calls.consent import bind, drop_consent, hold_for_approval, version_policy
from orchestrator.pex.execution import Completed, Parked
from orchestrator.tools.trifecta import Cause, find_cause
from orchestrator.turns.approval import ApprovalStatus
from tests.cases import for_each
from tests.unit.pex.setting import SPEC, TAKE, Setting, make_setting

WIPE = replace(TAKE, requires_approval=True)
WIPING = replace(SPEC, tools=(ToolUse(TAKE.tool_id),), outputs=("taken",))


def waiting() -> tuple[Setting, PendingApproval]:
    """Return a flow that waits for an approval of one call."""
    setting = make_setting(WIPING, tools=(WIPE,))
    parked = hold_for_approval(setting.run, _tool(setting), {"place": "attic"}, Cause())
    assert isinstance(parked, Parked)
    (approval,) = setting.context.state.approvals
    return setting, approval


def _tool(setting: Setting) -> Any:
    return setting.run.tools.find(TAKE.tool_id)


def granted() -> tuple[Setting, PendingApproval]:
    """Return the flow with the approval that it waited for."""
    setting, approval = waiting()
    setting.context.state.approvals.clear()
    setting.context.state.stack.approve(setting.run.flow, setting.context.now)
    grant(setting.run.flow, approval.approval_id, bind(approval))
    return setting, approval


@for_each(
    "change",
    [
        {"tool_id": "thing_look"},
        {"arguments": {"place": "cellar"}},
        {"flow_id": "flow_other"},
        {"plan_revision": 1},
        {"policy_version": "other"},
    ],
)
def test_whatever_it_is_bound_to_makes_another_one(change: dict[str, Any]) -> None:
    _, approval = waiting()
    assert bind(replace(approval, **change)) != bind(approval)


def test_what_does_not_change_the_call_does_not_matter() -> None:
    _, approval = waiting()
    assert bind(replace(approval, approval_id="a", question="?")) == bind(approval)


async def test_the_call_that_was_granted_is_made_once() -> None:
    setting, approval = granted()

    assert await setting.policy.execute(setting.run) == Completed()

    assert setting.things.calls == ["attic"]
    assert setting.context.changes.approvals.closed == {approval.approval_id: ApprovalStatus.USED}
    assert setting.run.flow.consent.grant is None


def test_a_grant_for_other_arguments_is_void_and_it_is_asked_anew() -> None:
    setting, approval = granted()

    parked = hold_for_approval(setting.run, _tool(setting), {"place": "cellar"}, Cause())

    assert isinstance(parked, Parked)
    assert setting.context.changes.approvals.closed == {approval.approval_id: ApprovalStatus.VOID}
    assert [asked.arguments for asked in setting.context.state.approvals] == [{"place": "cellar"}]


def test_a_grant_under_other_rules_is_void() -> None:
    setting, approval = granted()
    tool = replace(_tool(setting), spec=replace(WIPE, approval_above={"price": 10}))
    assert version_policy(setting.run, tool) != approval.policy_version

    assert isinstance(hold_for_approval(setting.run, tool, {"place": "attic"}, Cause()), Parked)

    assert setting.context.changes.approvals.closed == {approval.approval_id: ApprovalStatus.VOID}


async def test_the_checks_are_made_again_after_a_grant() -> None:
    """Conditions at the request may no longer hold at the grant."""
    setting, _ = granted()
    setting.run.flow.clear("place")

    await setting.policy.execute(setting.run)

    assert setting.things.calls == []


def test_a_correction_makes_a_grant_void() -> None:
    setting, approval = granted()

    drop_consent(setting.context, setting.run.flow)

    assert setting.context.changes.approvals.closed == {approval.approval_id: ApprovalStatus.VOID}


@for_each(
    ("known", "asked"),
    [
        ({"total": 11}, True),
        ({"total": 10}, False),
        ({"total": "much"}, True),
        ({"total": True}, True),
        ({"total": float("nan")}, True),
        ({}, True),
    ],
)
def test_a_bound_on_a_value(known: dict[str, Any], asked: bool) -> None:
    """PX-19: a missing or non-numeric value counts as above the limit."""
    spec = replace(TAKE, approval_above={"total": 10})

    assert (find_cause(spec, [], [], known) is not None) is asked
