"""The `keep_going` loop: run flows and clear the stack until the user must answer or the budget is used up (AG-1)."""

from dataclasses import replace

from orchestrator.agent.approvals import DECIDING
from orchestrator.agent.context_wait import ensure_fresh
from orchestrator.agent.failure import cascade, show_part
from orchestrator.agent.modules import Modules
from orchestrator.agent.replanning import begin_step, update_plan
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.steps.archive import keep_recent
from orchestrator.agent.steps.dispatch import dispatch
from orchestrator.agent.steps.load import hear
from orchestrator.agent.tasks import put_off, update_stack
from orchestrator.dialogue.consent import drop_candidate
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import MessageKind
from orchestrator.pex.execution import Ending, Failed, Partial, Recover, Stacked
from orchestrator.saying import say
from orchestrator.telemetry import SignalType
from orchestrator.telemetry.traces import note_failure

_ABOUT_WHAT_IS_OPEN = frozenset({*DECIDING, MessageKind.CANCELLATION})


async def carry_out(turn: RunningTurn, modules: Modules) -> None:
    """Run flows until only the user can continue or `keep_going_budget` is used up. Then respond."""
    state, context = turn.context.state, turn.context
    going = turn.context.changes.carry_on and state.stack.active is not None
    for _ in range(context.world.domain.config.flow_management.keep_going_budget):
        stacked = False
        if going:
            state.keep_going(going=False)
            stacked = isinstance(await _execute(turn, modules), Stacked)
        going = update_stack(context) or stacked
        plan = state.stack.plan
        if plan is not None and await update_plan(context, modules.planner, plan):
            going = True
        if not going or state.stack.active is None or _must_decide(state):
            break
    else:
        context.log.signal("agent", SignalType.CHECK, check="keep_going_budget", ok=False)
    state.keep_going(going=False)
    if context.journal.stopped:
        done = [note for note in state.effects if note.turn_id == turn.work.turn_id and note.is_done]
        names = [note.summary or note.tool_id for note in done]
        turn.context.tell(NoticeKind.STOPPED, done=names, overtaken=context.journal.overtaken)
        for flow in state.stack.flows if context.journal.overtaken else ():
            drop_candidate(flow)  # the reply doesn't show the call, so the user cannot confirm it
    elif state.later and (due := state.take_due()):
        await _take_up(turn, modules, *due)
        await carry_out(turn, modules)
        return
    besides = (
        turn.context.changes.understanding.later if turn.context.changes.understanding is not None else ""
    )
    if besides and any(besides in requests for requests in state.later.values()):
        turn.context.tell(NoticeKind.ASSUMED, why=say("later", request=besides))
    turn.phases.enter("respond")
    turn.answer = await modules.res.respond(context)


async def _take_up(turn: RunningTurn, modules: Modules, request: str, *more: str) -> None:
    """Handle a deferred request, and defer the requests `more` again.

    A deferred request is older than the open question, so it neither confirms nor cancels anything.
    """
    keep_recent(turn, modules)
    turn.context.changes.carry_on, turn.context = False, hear(turn.context, modules, request)
    understood = await modules.nlu.think(request, turn.context.state, turn.context, turn.context.call)
    if understood.kind in _ABOUT_WHAT_IS_OPEN:
        understood = replace(understood, kind=MessageKind.UNKNOWN)
    turn.context.changes.understanding = understood
    turn.context.tell(NoticeKind.ASSUMED, why=say("now_to", request=understood.text or request))
    await dispatch(turn, modules)
    if more:
        put_off(turn.context, *more)


def _must_decide(state: DialogueState) -> bool:
    """Return whether the user must first decide about a committed effect (RT-12)."""
    return state.ambiguity.current is not None and state.ambiguity.current.about.stops_everything


async def _execute(turn: RunningTurn, modules: Modules) -> Ending:
    """Run the active flow in PEX. After a failure, retry or run another flow, as `cascade` decides."""
    while True:
        active = turn.context.state.stack.active
        if active is not None:
            if active.plan_id is not None:
                begin_step(turn.context, active)
            active.note_turn(turn.work.turn_id)
            if active.spec.freshness is not None:
                await ensure_fresh(turn.context, modules, active)
        turn.phases.enter("execute")
        work = modules.pex.find_work(turn.context, active)
        ending = work if isinstance(work, Failed) else await work[0].execute(work[1])
        if isinstance(ending, Partial):
            show_part(turn.context)
        if not isinstance(ending, Failed | Recover):
            return ending
        note_failure((ending.failure if isinstance(ending, Recover) else ending).category.value)
        if not await cascade(turn.context, modules, ending):
            return ending
