"""The policy for Plan flows, which decomposes the request first and checks the goal last (PL-1, PL-3).

The Agent runs the steps in between. Public API for domains, like `BasePolicy`.
"""

from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.plan_steps import add_steps
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import FAILED
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Ending, Execution, Failed, GaveUp, Stacked
from orchestrator.pex.policy import BasePolicy
from orchestrator.plans.changes import note_revision, stack_plan
from orchestrator.plans.planner import Decomposed, GoalCheck, Planner
from orchestrator.plans.recipe import apply_rules
from orchestrator.saying import say
from orchestrator.types import Json, JsonObject

LONGEST_FACT = 60  # characters; longer outputs are not listed as facts


class PlanPolicy(BasePolicy):
    """The policy for Plan flows. `planner`: set when the Agent is built."""

    planner: Planner

    async def results(self, run: Execution) -> Ending | None:
        """Leave the findings unchanged, because `invoke` has already stored them."""
        del run
        return None

    async def invoke(self, run: Execution) -> Ending | None:
        """Decompose the request, or check the goal after the sub-flows have ended.

        Return Stacked if sub-flows were pushed, None if the goal is met, GaveUp if the plan cannot meet it,
        or Failed if there are no steps.
        """
        plan = run.flow
        if not isinstance(plan, PlanFlow):
            return Failed(FailureCategory.SERVER_ERROR, say("cannot_plan"), check="plan_flow")
        if plan.rounds == 0:
            return await self._begin(run, plan)
        goal = await self.planner.judge(plan, run.context)
        if goal.complete:
            self._report(run, plan, goal)
            self._report_omissions(run, plan)
            note_revision(run.context, plan, "finished")
            return None
        return await self._go_on(run, plan, goal)

    async def _begin(self, run: Execution, plan: PlanFlow) -> Ending:
        found = await self.planner.decompose(plan, run.context)
        if found is None:
            message = say("steps_unknown")
            return Failed(FailureCategory.SERVER_ERROR, message, check="decomposition")
        return self._stack(run, plan, found, "decomposed")

    async def _go_on(self, run: Execution, plan: PlanFlow, goal: GoalCheck) -> Ending:
        """Add sub-flows within `max_rounds`; otherwise, report the unmet parts of the goal and give up."""
        config = run.context.world.domain.config.plans
        if plan.rounds < config.max_rounds:
            found = await self.planner.decompose(plan, run.context)
            if found is not None:
                return self._stack(run, plan, found, "expand")
        self._report(run, plan, goal)
        note_revision(run.context, plan, "unfinished", "; ".join(goal.missing))
        run.context.tell(
            NoticeKind.PLAN_UNFINISHED,
            flow_id=plan.flow_id,
            missing=list(goal.missing),
            done=plan.done_labels,
            reasons=_reasons(plan, run.context),
        )
        run.context.state.stack.invalidate(plan, FAILED)
        return GaveUp()

    def _stack(self, run: Execution, plan: PlanFlow, found: Decomposed, outcome: str) -> Ending:
        context = run.context
        add_steps(plan, list(found.steps))
        plan.begin_round()
        if found.source == "model":
            plan.follow_model()
        for change in apply_rules(plan, context):
            note_revision(context, plan, change.kind.value, change.why)
        more: JsonObject = {"source": found.source, "problems": list(found.problems)}
        if found.search is not None:
            more["search"] = found.search
        note_revision(context, plan, outcome, "", **more)
        stack_plan(context, plan)
        context.state.note_plan()
        waiting = [step.label for step in plan.unfinished]
        if len(waiting) > 1:
            compared = 0 if found.search is None else len(found.search["nodes"]) - 1
            context.tell(NoticeKind.PLANNED, flow_id=plan.flow_id, steps=waiting, compared=compared)
        return Stacked()

    def _report_omissions(self, run: Execution, plan: PlanFlow) -> None:
        """Report a plan as partly done if the user skipped a step with a side effect."""
        flows = run.context.world.domain.flows
        left_out = [
            step.label
            for step in plan.steps
            if step.was_dropped_by_user
            and plan.step_named(step.name) is step
            and any(tool.has_effect for tool in run.tools.find_all(flows[step.dact].spec.tools))
        ]
        if left_out:
            run.context.changes.silent.add(plan.flow_id)
            run.context.tell(
                NoticeKind.PLAN_IN_PART, flow_id=plan.flow_id, done=plan.done_labels, left_out=left_out
            )

    def _report(self, run: Execution, plan: PlanFlow, goal: GoalCheck) -> None:
        """Store the variables for the plan's template."""
        run.data.update(
            {
                "goal": plan.goal,
                "summary": goal.summary,
                "missing": list(goal.missing),
                "steps": [_show_step(step.label, step.is_done, step.outputs) for step in plan.steps],
                "found": {step.name: step.outputs for step in plan.steps if step.outputs},
            }
        )
        run.context.changes.findings[plan.flow_id] = run.data


def _show_step(label: str, done: bool, outputs: JsonObject) -> JsonObject:
    facts = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in outputs.items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and len(str(value)) <= LONGEST_FACT
    ]
    return {"label": label, "done": done, "outputs": outputs, "facts": facts}


def _reasons(plan: PlanFlow, context: TurnContext) -> list[Json]:
    """Return reasons for steps that were not done.

    Steps that the user dropped and reasons that were already reported in this turn are left out.
    """
    said = {part.values.get("message") for part in context.changes.messages if isinstance(part, Notice)}
    return [
        {"label": step.label, "why": step.note}
        for step in plan.steps
        if step.note
        and step.note not in said
        and step.is_finished
        and not step.is_done
        and not step.was_dropped_by_user
    ]
