"""Stored plans: the current plan and its revisions (PL-6)."""

from dataclasses import asdict, dataclass

from orchestrator.types import JsonObject


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan at the end of a turn. `body`: steps, progress, slots and the tree search that selected the plan."""

    plan_id: str
    dact: str
    goal: str
    state: str
    reason: str | None
    revision: int
    body: JsonObject


@dataclass(frozen=True, slots=True)
class PlanRevision:
    """A revision of a plan.

    Args:
        number: the revision's position in the plan's history, from 1.
        outcome: for example decomposed, continue, reorder, expand, prune, edited or finished.
        body: the resulting steps and progress.
    """

    plan_id: str
    number: int
    outcome: str
    why: str
    body: JsonObject


def show_plan(record: PlanRecord, turn_id: str, at: str, revisions: list[JsonObject]) -> JsonObject:
    """Return a plan in the APIs' format. `turn_id` and `at`: the turn and time of the last change."""
    facts = asdict(record)
    body = facts.pop("body")
    return {**facts, "turn_id": turn_id, "at": at, **body, "revisions": revisions}


def plan_in(state: JsonObject) -> JsonObject | None:
    """Return a working state's active or most recent plan, in the APIs' format, or None."""
    flows = [*state.get("stack", ()), *reversed(state.get("completed", ()))]
    plan = next((flow for flow in flows if "steps" in flow), None)
    if plan is None:
        return None
    steps = [
        {"purpose": step.get("name", "").replace("_", " "), "note": "", "reason": None, **step}
        for step in plan["steps"]
    ]
    counted = [step for step in steps if step["reason"] not in {"pruned", "cancelled"}]
    done = sum(step["state"] == "Completed" for step in counted)
    facts = {"plan_id": plan["flow_id"], "goal": plan.get("goal", ""), "reason": plan.get("reason")}
    facts |= {name: plan[name] for name in ("dact", "state", "revision")}
    return {**facts, "steps": steps, "progress": f"{done} of {len(counted)}"}


def show_revision(revision: PlanRevision, turn_id: str, at: str) -> JsonObject:
    facts = {"number": revision.number, "outcome": revision.outcome, "why": revision.why}
    return {**facts, "turn_id": turn_id, "at": at, **revision.body}
