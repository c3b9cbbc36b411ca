"""Decisions about plans: decomposition, changes after a finished step, and the goal check.

Declared recipes and rules decide first, then a model if one is configured. The policy and the Agent stack the
steps and report the changes.
"""

from dataclasses import dataclass

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.records import PlanStep
from orchestrator.plans.advisor import Advisor
from orchestrator.plans.changes import Change, revise
from orchestrator.plans.drafts import Draft, Refused
from orchestrator.plans.recipe import (
    apply_rules,
    count_steps,
    due_steps,
    find_missing,
    follows_recipe,
    make_step,
)
from orchestrator.telemetry import SignalType
from orchestrator.types import JsonObject

WORTH_A_TREE = 4
"""Minimum number of steps for a tree search in `auto` mode (PL-5)."""


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A decomposition. `source`: ``model`` or ``recipe``. `search`: the record of the tree search, or None."""

    steps: tuple[PlanStep, ...]
    source: str
    problems: tuple[str, ...] = ()
    search: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class GoalCheck:
    """The result of a goal check. `missing`: unmet parts of the goal. `summary`: the results, for the user."""

    complete: bool
    missing: tuple[str, ...] = ()
    summary: str = ""


class Planner:
    def __init__(self, advisor: Advisor) -> None:
        self._advisor = advisor

    async def decompose(self, plan: PlanFlow, context: TurnContext) -> Decomposed | None:
        """Return the steps for a request, or more steps if its goal is not met.

        Return None if there are no steps or the plan already has `max_sub_flows` steps.
        """
        room = context.world.domain.config.plans.max_sub_flows - count_steps(plan)
        if room <= 0:
            return None
        if follows_recipe(plan) and not self._asks_beyond_recipe(plan, context):
            declared = self._follow_recipe(plan, room)
            if declared is not None:
                return declared
        found = await self._ask_for_steps(plan, context, room) if self._may_ask(context) else None
        if found is None and plan.beyond and plan.rounds == 0:
            context.tell(NoticeKind.NOT_UNDERSTOOD, words=[*plan.beyond])
        return found or self._follow_recipe(plan, room)

    def _follow_recipe(self, plan: PlanFlow, room: int) -> Decomposed | None:
        steps = tuple(make_step(declared) for declared in due_steps(plan)[:room])
        return Decomposed(steps, "recipe") if steps else None

    async def _ask_for_steps(self, plan: PlanFlow, context: TurnContext, room: int) -> Decomposed | None:
        draft = await self._advisor.decompose(plan, context, room)
        if draft is None:
            return None
        if isinstance(draft, Refused):
            context.log.failed_check("plans", "decomposition", " ".join(draft.reasons), plan.flow_id)
            return None
        record: JsonObject | None = None
        if self._is_worth_a_tree(draft, context):
            found = await self._advisor.search(draft, plan, context, room)
            record = found.record(Draft.show)
            draft = found.best.state if found.best is not None else draft
            context.log.signal(
                "plans", SignalType.PLAN, plan.flow_id, search=record["calls"], chosen=record["chosen"]
            )
        return Decomposed(draft.steps, "model", draft.problems, record)

    def _is_worth_a_tree(self, draft: Draft, context: TurnContext) -> bool:
        mode = context.world.domain.config.plans.tree_search
        if mode == "auto":
            return len(draft.steps) >= WORTH_A_TREE and draft.is_open
        return mode == "on"

    async def check(self, plan: PlanFlow, context: TurnContext) -> list[Change]:
        """Run the replanning check, first with the rules, then with a model if one is configured.

        Return all changes (PL-2).
        """
        limit = context.world.domain.config.plans.max_sub_flows
        changes = apply_rules(plan, context)
        if plan.unfinished and self._may_ask(context):
            room = limit - count_steps(plan)
            body = await self._advisor.replan(plan, context, limit)
            if body is not None:
                changes += self._follow_advice(plan, context, body, room)
        return changes

    def _follow_advice(
        self, plan: PlanFlow, context: TurnContext, body: JsonObject, room: int
    ) -> list[Change]:
        why = str(body.get("reason") or "")[:200]
        remaining = plan.unfinished
        if body["decision"] == "stop":
            return revise(plan, context, [], why)
        if body["decision"] != "change":
            return []
        rest = _without(plan, remaining)
        draft = self._advisor.check_draft(body, rest, context, room + len(remaining))
        if isinstance(draft, Refused):
            context.log.failed_check("plans", "replanning", " ".join(draft.reasons), plan.flow_id)
            return []
        return revise(plan, context, list(draft.steps), why)

    async def judge(self, plan: PlanFlow, context: TurnContext) -> GoalCheck:
        """Check whether all required steps are done and whether the model, if available, deems the goal met (PL-3)."""
        missing = find_missing(plan)
        body = await self._advisor.judge(plan, context) if self._may_ask(context) else None
        if body is None:
            return GoalCheck(not missing, tuple(missing))
        lacking: list[str] = [part[:120] for part in body.get("missing", ())]
        complete = bool(body["complete"]) and not missing
        return GoalCheck(complete, tuple(missing or lacking), str(body.get("summary") or "")[:1000])

    def _may_ask(self, context: TurnContext) -> bool:
        return context.world.domain.config.plans.model != "off" and self._advisor.available

    def _asks_beyond_recipe(self, plan: PlanFlow, context: TurnContext) -> bool:
        """Return whether a model decomposes the request even if steps are declared."""
        return bool(plan.beyond) or context.world.domain.config.plans.model == "on"


def _without(plan: PlanFlow, steps: list[PlanStep]) -> PlanFlow:
    """Return a copy of the plan without these steps, so that new steps can reuse their names."""
    over = [step for step in plan.steps if all(step is not other for other in steps)]
    return type(plan)(plan.started_at, flow_id=plan.flow_id, slots=plan.slots, goal=plan.goal, steps=over)
