"""Recover from a PEX failure (AG-6): retry, gather context, reroute, skip a plan's step, or tell the user."""

from orchestrator.agent.context_wait import gather
from orchestrator.agent.modules import Modules
from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.inheritance import take_inputs
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import FAILED
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import LeftOpen, TryAgain
from orchestrator.dialogue.specification import Family
from orchestrator.dialogue.understanding import Mention
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Failed, Recover, Recovery
from orchestrator.telemetry import SignalType
from orchestrator.types import Dact


async def cascade(context: TurnContext, modules: Modules, ending: Failed | Recover) -> bool:
    """Recover from a failure. Return True if the flow on top of the stack should run now."""
    flow = context.state.stack.active
    failure = ending.failure if isinstance(ending, Recover) else ending
    if flow is None:
        _tell(context, failure, None)
        return False
    if isinstance(ending, Recover) and ending.recovery is Recovery.RETRY:
        _signal(context, flow, Recovery.RETRY, failure)
        return True
    if isinstance(ending, Recover) and ending.recovery is Recovery.GATHER:
        _signal(context, flow, Recovery.GATHER, failure)
        found = await gather(context, modules, flow, failure)
        if found is not False:
            return found is True
        context.changes.climbed.add((flow.flow_id, Recovery.REROUTE.value))
        ending = Recover(Recovery.REROUTE, failure)
    if isinstance(ending, Recover) and await _reroute(context, modules, flow, ending):
        return True
    if _skip(context, flow, failure):
        _signal(context, flow, Recovery.SKIP, failure)
        return False
    _signal(context, flow, Recovery.ESCALATE, failure)
    if failure.uncertain:
        _ask_open_question(context, flow, failure)
        return False
    _tell(context, failure, flow)
    if failure.category in WORTH_ANOTHER_TRY and failure.check is None and not failure.final:
        _offer_another_try(context, flow)
    else:
        context.state.stack.invalidate(flow, FAILED)
    return False


WORTH_ANOTHER_TRY = frozenset(
    {FailureCategory.SERVER_ERROR, FailureCategory.TIMEOUT, FailureCategory.RATE_LIMIT}
)


async def _reroute(context: TurnContext, modules: Modules, flow: BaseFlow, ending: Recover) -> bool:
    """Switch to the policy's fallback flow, or to a flow that NLU finds.

    Return False if neither is possible, or if the turn has already switched `max_recovery_attempts` times.
    """
    if context.changes.reroutes >= context.world.domain.config.resilience.max_recovery_attempts:
        return False
    target, slots = ending.target, dict[str, Mention]()
    if ending.recovery is Recovery.REROUTE:
        target, slots = await _contemplate(context, modules, flow, ending.failure)
    if ending.recovery is Recovery.ESCALATE or target is None or target == flow.dact:
        return False
    if flow.plan_id is not None and not _may_stand_in(context, flow, target):
        return False
    context.changes.reroutes += 1
    _signal(context, flow, ending.recovery, ending.failure, target=target)
    context.tell(NoticeKind.FAILED, message=ending.failure.message, category=ending.failure.category.value)
    fresh = context.state.stack.fall_back(context.world.domain.flows[target], context.now)
    take_inputs(context.state, fresh)
    said = {name: mention for name, mention in slots.items() if name not in fresh.slots}
    for problem in fresh.fill_slots_by_label(said, turn_id=context.ids.turn_id):
        context.log.failed_check("agent", "reroute_value", str(problem.why), fresh.flow_id)
    context.state.note_origin(natural=False)
    context.log.event("flow_pushed", dact=fresh.dact, flow_id=fresh.flow_id)
    return True


async def _contemplate(
    context: TurnContext, modules: Modules, flow: BaseFlow, failure: Failed
) -> tuple[Dact | None, dict[str, Mention]]:
    """Ask NLU for a flow that can replace the failed flow. Return its name, or None, and its slot values.

    There are no slot values if the flow is not NLU's first choice.
    """
    evidence = {**failure.evidence, "category": failure.category.value, "message": str(failure.message)}
    understood = await modules.nlu.contemplate(
        context.text, context.state, context, flow.spec, evidence, context.call
    )
    known = (score.dact for score in understood.flows if score.dact in context.world.domain.flows)
    target = next((dact for dact in known if _may_replace(context, flow, dact, failure)), None)
    is_best = target is not None and target == understood.flows[0].dact
    return target, dict(understood.slots) if is_best else {}


def _may_replace(context: TurnContext, flow: BaseFlow, dact: Dact, failure: Failed) -> bool:
    """Return whether the flow `dact` can replace the failed flow.

    A flow with side effects must be an edge flow or the fallback of the failed flow. Even then, it cannot
    replace a flow whose call succeeded with an unusable result.
    """
    if not failure.unusable and dact in {*flow.spec.edge_flows, flow.spec.fallback}:
        return True
    return _changes_nothing(context, dact)


def _changes_nothing(context: TurnContext, dact: Dact) -> bool:
    domain = context.world.domain
    uses = domain.flows[dact].spec.tools
    return all(use.tool_id in domain.tools and not domain.tools[use.tool_id].has_effect for use in uses)


def _may_stand_in(context: TurnContext, flow: BaseFlow, dact: Dact) -> bool:
    """Return whether `dact` can replace a plan's step: it isn't a plan, and has side effects if the step has."""
    spec = context.world.domain.flows[dact].spec
    if spec.family is Family.PLAN:
        return False
    return _changes_nothing(context, flow.dact) or not _changes_nothing(context, dact)


def _skip(context: TurnContext, flow: BaseFlow, failure: Failed) -> bool:
    """Skip a plan's failed step and tell the user. Return False if the flow is not part of a plan."""
    plan = context.state.stack.plan_of(flow)
    if plan is None:
        return False
    step = plan.step_of(flow.flow_id)
    if step is not None:
        step.become(step.status, failure.message)
    _tell(context, failure, flow)
    context.state.stack.invalidate(flow, FAILED)
    return True


def _tell(context: TurnContext, failure: Failed, flow: BaseFlow | None) -> None:
    context.state.note_issues()
    context.tell(
        NoticeKind.FAILED,
        message=failure.message,
        category=failure.category.value,
        flow_id=flow.flow_id if flow is not None else None,
    )


def _offer_another_try(context: TurnContext, flow: BaseFlow) -> None:
    context.state.ambiguity.declare(TryAgain(flow_id=flow.flow_id))


def _ask_open_question(context: TurnContext, flow: BaseFlow, failure: Failed) -> None:
    """Ask the user the question that a skill could not resolve. Any answer continues the flow."""
    context.state.note_issues()
    question = LeftOpen(flow_id=flow.flow_id, text=failure.message)
    context.state.ambiguity.declare(question)


def show_part(context: TurnContext) -> None:
    """Show a partial result with its warning, and offer to retry the remaining part (PX-13)."""
    flow = context.state.stack.active
    if flow is not None:
        context.changes.messages.append(flow)
        _offer_another_try(context, flow)


def _signal(context: TurnContext, flow: BaseFlow, rung: Recovery, failure: Failed, **more: str) -> None:
    more = {"dact": flow.dact, "category": failure.category.value, **more}
    context.log.signal("agent", SignalType.RECOVERY, flow.flow_id, rung=rung, **more)
