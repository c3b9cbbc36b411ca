"""Say how far a plan is (PL-4)."""

from __future__ import annotations

from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.plans.stacking import read_progress


def tell_progress(turn: RunningTurn, plan: PlanFlow) -> None:
    """How far a plan is, and what is still to come (PL-4)."""
    progress = read_progress(plan)
    turn.changes.remark(
        RemarkKind.PLAN_STATUS,
        flow_id=plan.flow_id,
        completed=progress.completed,
        total=progress.total,
        done=list(dict.fromkeys(step.label for step in plan.steps if step.is_done)),
        steps=[step.label for step in plan.steps if not step.is_finished],
    )
