"""Suggested replies that do not answer a question: plan steps to skip, and next tasks (RS-7)."""

from collections.abc import Iterator

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.dialogue.questions import Option
from orchestrator.dialogue.specification import Family
from orchestrator.res.response import Response
from orchestrator.res.steps.clarify import write_action
from orchestrator.res.wording import name_task
from orchestrator.saying import say
from orchestrator.types import Dact

ABOUT_PLANS = frozenset(
    {NoticeKind.PLANNED, NoticeKind.REPLANNED, NoticeKind.PLAN_STATUS, NoticeKind.NO_SUCH_STEP}
)


async def suggest(response: Response) -> None:
    """Suggest plan steps to skip, or next tasks if no task or question is open."""
    context, answer, templates = response.context, response.answer, response.templates
    most = context.world.domain.config.generation.suggested_replies
    plan = context.state.stack.plan
    if plan is not None and _speaks_of_plans(context):
        answer.actions += [write_action(option, templates) for option in list(_skips(plan))[:most]]
    elif answer.question is None and not answer.actions and context.state.stack.active is None:
        answer.actions = [write_action(option, templates) for option in list(_next_steps(context))[:most]]


def _speaks_of_plans(context: TurnContext) -> bool:
    return any(isinstance(part, Notice) and part.kind in ABOUT_PLANS for part in context.changes.messages)


def _skips(plan: PlanFlow) -> Iterator[Option]:
    for step in plan.steps:
        if not step.is_finished:
            label = say("leave_out", step=step.label)
            yield Option(label, "skip_step", {"flow_id": plan.flow_id, "step": step.name})


def _next_steps(context: TurnContext) -> Iterator[Option]:
    """Yield the tasks that follow the last completed tasks."""
    seen: set[Dact] = {flow.dact for flow in context.changes.completed}
    for done in reversed(context.changes.completed):
        for dact in done.spec.edge_flows:
            flow = context.world.domain.flows.get(dact)
            if dact not in seen and flow is not None and _can_be_asked_for(flow):
                seen.add(dact)
                yield Option(name_task(flow), "start_flow", {"dact": dact})


def _can_be_asked_for(flow: type[BaseFlow]) -> bool:
    return flow.spec.family is not Family.INTERNAL and bool(flow.spec.examples)
