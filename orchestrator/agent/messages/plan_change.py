"""Change a plan at the user's request: add, skip or move steps (PL-2)."""

from orchestrator.agent.corrections.completed import set_back
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.tasks import plain_values, put_off
from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.plan_steps import add_steps, drop_step, order_steps
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.understanding import PlanAction, PlanChange, Understanding
from orchestrator.plans.answer_schemas import LONGEST_PURPOSE
from orchestrator.plans.changes import free_name, note_revision, stack_plan
from orchestrator.plans.recipe import count_steps
from orchestrator.saying import say
from orchestrator.types import FlowId, new_id


def change_plan(context: TurnContext, understood: Understanding) -> None:
    """Add, skip or move steps in the plan. Completed steps stay unchanged."""
    plan, change = context.state.stack.plan, understood.plan_change
    if change is not None and change.action is PlanAction.ADD:
        _add(context, plan, change, understood)
        return
    step = plan.step_named(change.step or "") if plan is not None and change is not None else None
    if plan is None or change is None or step is None or step.is_finished:
        _refuse(context, plan)
    elif change.action is PlanAction.SKIP:
        others = map(plan.step_named, change.others)
        _skip(context, plan, [step, *(one for one in others if one is not None and not one.is_finished)])
    else:
        _move(context, plan, step, change)


def _add(context: TurnContext, plan: PlanFlow | None, change: PlanChange, understood: Understanding) -> None:
    """Add a step after the step whose results it uses. If the plan is full, defer the request."""
    giver = plan.step_named(change.step) if plan is not None and change.step is not None else None
    if plan is None or giver is None or not understood.flows:
        leave_open(context)
        return
    most = context.world.domain.config.plans.max_sub_flows
    request = understood.target or understood.text
    if count_steps(plan) >= most:
        put_off(context, request)
        context.tell(NoticeKind.ASSUMED, why=say("later", request=request))
        leave_open(context)
        return
    dact = understood.flows[0].dact
    values = plain_values(understood.slots)
    step = PlanStep(
        flow_id=FlowId(new_id("flow")),
        dact=dact,
        name=free_name(dact, plan.steps),
        purpose=request[:LONGEST_PURPOSE],
        slots={name: {"value": value} for name, value in values.items()},
        needs=(giver.name,),
    )
    before = plan.steps[: plan.steps.index(giver) + 1]
    add_steps(plan, [step], after={one.name for one in before})
    note_revision(context, plan, "edited", f"the user wants {step.label}")
    steps = [one.label for one in plan.unfinished]
    context.tell(NoticeKind.REPLANNED, flow_id=plan.flow_id, added=[step.label], by_user=True, steps=steps)
    context.changes.plans.edited = True
    stack_plan(context, plan)
    _go_on(context, started=False)


def _refuse(context: TurnContext, plan: PlanFlow | None) -> None:
    steps = [step.label for step in plan.unfinished] if plan is not None else []
    context.tell(NoticeKind.NO_SUCH_STEP, steps=steps)
    leave_open(context)


def _skip(context: TurnContext, plan: PlanFlow, steps: list[PlanStep]) -> None:
    state, was_active = context.state, any(_is_active(context, step) for step in steps)
    for step in steps:
        state.ambiguity.resolve(flow_id=step.flow_id)
        state.void_approvals(step.flow_id)
        drop_step(state.stack, plan, step, "you asked to skip it", context.now, by_user=True)
        note_revision(context, plan, "edited", f"skip {step.name}")
    labels = [step.label for step in steps]
    context.tell(NoticeKind.REPLANNED, flow_id=plan.flow_id, dropped=labels, by_user=True)
    context.changes.plans.edited = True
    _go_on(context, started=was_active)


def _move(context: TurnContext, plan: PlanFlow, step: PlanStep, change: PlanChange) -> None:
    """Move a step forward, unless it needs an unfinished step.

    The running step becomes a planned step again.
    """
    waiting = [other.name for other in plan.unfinished if other is not step]
    place = waiting.index(change.other) if change.other in waiting else 0
    blocked = _lacks(plan, step)
    if blocked is not None:
        context.tell(NoticeKind.NO_SUCH_STEP, steps=[], step=step.label, needs=blocked.label)
        leave_open(context)
        return
    top = context.state.stack.top
    if top is not None and top.status == AWAITING_APPROVAL and top.plan_id == plan.flow_id:
        context.state.stack.unpark(top, context.now)
    active = context.state.stack.active
    if order_steps(plan, [*waiting[:place], step.name, *waiting[place:]]) and active is not None:
        set_back(context, active)
    note_revision(context, plan, "reorder", f"the user wants {step.name} earlier")
    steps = [other.label for other in plan.unfinished]
    context.tell(NoticeKind.REPLANNED, flow_id=plan.flow_id, reordered=True, by_user=True, steps=steps)
    stack_plan(context, plan)
    _go_on(context, started=True)


def _lacks(plan: PlanFlow, step: PlanStep) -> PlanStep | None:
    needed = (plan.step_named(name) for name in step.needs)
    return next((other for other in needed if other is not None and not other.is_finished), None)


def _is_active(context: TurnContext, step: PlanStep) -> bool:
    active = context.state.stack.active
    return active is None or active.flow_id == step.flow_id


def _go_on(context: TurnContext, *, started: bool) -> None:
    """Continue with the active flow.

    `started`: True if another flow became active, so that no question is repeated.
    """
    context.changes.carry_on = context.state.stack.active is not None
    context.changes.asks_again = context.changes.asks_again or not started
