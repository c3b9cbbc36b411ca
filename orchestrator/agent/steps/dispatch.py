from __future__ import annotations

from collections.abc import Collection

from orchestrator.agent.approvals import DECIDING, expire_approvals, take_decision
from orchestrator.agent.corrections.settling import decide
from orchestrator.agent.messages import MESSAGES
from orchestrator.agent.messages.answers import act
from orchestrator.agent.messages.displayed_rows import follow_row
from orchestrator.agent.modules import Modules
from orchestrator.agent.open_question import leave_open, reject
from orchestrator.agent.paging import show_page
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import cancel, done_by, left_to_planner, plain_values, put_off
from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Ambiguity
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions.deeds import Decision, Deed
from orchestrator.dialogue.understanding import Digression, MessageKind, Source, Understanding
from orchestrator.saying import say
from orchestrator.types import FlowId, JsonObject, is_object

_CLOSED = frozenset({Source.ACTION, Source.COMMAND})
CHANGES_NOTHING = frozenset({MessageKind.DIGRESSION, MessageKind.CHITCHAT, MessageKind.UNKNOWN})


async def dispatch(turn: RunningTurn, modules: Modules) -> None:
    """Apply the message to the stack and the open question. Set `changes.carry_on` if PEX should run."""
    context = turn.context
    _abandon_stale(context)
    if context.state.approvals:
        expire_approvals(context)
    understood = context.changes.understanding
    if understood is None:
        leave_open(context)
        return
    if understood.rejection is not None:
        reject(context, understood.rejection.value)
        return
    if understood.kind is not MessageKind.DIGRESSION:
        context.state.end_digression()
    if (decision := _read_decision(understood)) is not None:
        decide(context, decision)
        return
    if (chosen := _find_chosen(context, understood)) is not None:
        act(context, *chosen)
        return
    if _is_over(context, understood):
        context.tell(NoticeKind.OVER)
        leave_open(context)
        return
    is_decided = understood.kind in DECIDING and await take_decision(context, understood)
    if is_decided or await _turn_page(context, modules, understood):
        return
    _drop_loose_questions(context, understood)
    if understood.declines and (declined := context.state.stack.active) is not None:
        cancel(context, declined)
    _report_reading(context, understood)
    offered = _find_offered(context)
    MESSAGES[understood.kind](context, understood)
    _note_work(context, understood, offered)


async def _turn_page(context: TurnContext, modules: Modules, understood: Understanding) -> bool:
    """Show another page of a table. Return False if the message doesn't ask for a page."""
    if understood.kind is not MessageKind.DIGRESSION or understood.digression is not Digression.PAGE:
        return False
    context.state.digression.record(Digression.PAGE)
    _report_reading(context, understood)
    await show_page(context, modules, understood.target)
    leave_open(context)
    return True


def _report_reading(context: TurnContext, understood: Understanding) -> None:
    """Inform the user about assumptions, and about words that were not understood (IR-6)."""
    for why in understood.assumed:
        context.tell(NoticeKind.ASSUMED, why=why)
    left = understood.not_understood if understood.kind is not MessageKind.UNKNOWN else ()
    if left and not _is_for_planner(context, understood):
        context.tell(NoticeKind.NOT_UNDERSTOOD, words=list(left))


def _is_for_planner(context: TurnContext, understood: Understanding) -> bool:
    """Return whether the message starts a plan whose planner will use the words that were not understood."""
    return bool(left_to_planner(context)) and context.state.stack.find(understood.flows[0].dact) is None


def _find_offered(context: TurnContext) -> list[FlowId | None]:
    """List the IDs of flows with a call that waits for confirmation."""
    entries = context.state.ambiguity.open
    return [entry.flow_id for entry in entries if entry.about.fingerprint is not None]


def _note_work(context: TurnContext, understood: Understanding, offered: Collection[FlowId | None]) -> None:
    """Record the message in the active flow, and defer the message's further requests.

    If the interpretation is doubtful, the flow then requires a confirmation for every side effect.
    """
    active = context.state.stack.active
    if understood.later:
        put_off(context, understood.later)
    if active is None:
        return
    active.note_turn(context.ids.turn_id)
    if context.state.shown is not None:
        follow_row(context, active)
    is_closed = understood.source in _CLOSED or understood.kind is not MessageKind.TASK
    may_agree = bool(offered) and not is_closed and active.flow_id not in offered
    is_partial = understood.not_understood or understood.assumed  # “every month, but not in December”
    is_doubtful = may_agree or understood.by_model_alone or understood.copied or is_partial
    if is_doubtful and understood.kind not in CHANGES_NOTHING:
        active.progress.doubt()
    if understood.refers:
        active.progress.refer()


def _read_decision(understood: Understanding) -> Decision | None:
    """Return the user's decision about committed effects, or None.

    Decisions interpreted by a model are not returned, because they need confirmation.
    """
    chosen = understood.kind is MessageKind.CORRECTION and understood.source is not Source.SYSTEM2
    return Decision(understood.target) if chosen and understood.target in set(Decision) else None


def _find_chosen(context: TurnContext, understood: Understanding) -> tuple[Ambiguity, Deed] | None:
    """Return the open question and the answer's action if a model interpreted the message as an answer, or None."""
    entry = context.state.ambiguity.current if understood.source is Source.SYSTEM2 else None
    deed = entry.about.choose(understood.target or "") if entry is not None else None
    return None if entry is None or deed is None else (entry, deed)


def _is_over(context: TurnContext, understood: Understanding) -> bool:
    """Return whether a click is about something that is no longer open (PX-18)."""
    given = (context.action or {}).get("payload")
    if understood.source is not Source.ACTION or not is_object(given):
        return False
    state, flow_id = context.state, given.get("flow_id")
    if understood.kind in DECIDING and "approval_id" not in given:
        return not _answers(state.ambiguity.current, understood.kind, given)
    if flow_id is None or understood.target in set(Decision):
        return False
    match understood.kind:
        case MessageKind.PLAN_CHANGE:
            known = [state.stack.plan]
        case MessageKind.SLOT_VALUE:
            known = [state.stack.top]
        case MessageKind.CORRECTION:
            known = [state.stack.top, state.stack.plan, *state.completed]
        case _:
            known = state.stack.live()
    return all(flow is None or flow.flow_id != flow_id for flow in known)


def _answers(entry: Ambiguity | None, kind: MessageKind, given: JsonObject) -> bool:
    """Return whether a click answers the open question, or names no flow if no question is open.

    A confirmation must name the pending call.
    """
    if entry is None:
        return "flow_id" not in given
    candidate = entry.about.fingerprint
    named = kind is MessageKind.CONFIRMATION or "candidate" in given
    return given.get("flow_id", entry.flow_id) == entry.flow_id and (
        not named or given.get("candidate") == candidate
    )


def _drop_loose_questions(context: TurnContext, understood: Understanding) -> None:
    """Drop questions without a flow if the user does something else.

    A request that was waiting for the answer to such a question is deferred.
    """
    state, kind = context.state, understood.kind
    says_nothing = kind in CHANGES_NOTHING or (kind is MessageKind.CORRECTION and not understood.slots)
    gives_it_up = kind is MessageKind.CANCELLATION and not state.stack.live()
    if says_nothing or gives_it_up or kind in DECIDING:
        return
    for entry in [entry for entry in state.ambiguity.open if entry.flow_id is None]:
        request = entry.about.waiting_request
        if request and kind is MessageKind.CANCELLATION:
            continue  # `cancel_task` handles the request
        state.ambiguity.resolve(entry)
        if request and not _starts(entry, understood):
            put_off(context, request)
            context.tell(NoticeKind.ASSUMED, why=say("later", request=request))


def _starts(entry: Ambiguity, understood: Understanding) -> bool:
    """Return whether a message repeats the waiting request.

    It must name the same task and, if both fill some of the same slots, agree on at least one of them.
    """
    waiting = next((one.payload for one in entry.about.options if "then" in one.payload), None)
    if waiting is None or not understood.flows or understood.flows[0].dact != waiting["then"]:
        return False
    said = plain_values(understood.slots)
    both = said.keys() & waiting["slots"].keys()
    return not both or any(said[name] == waiting["slots"][name] for name in both)


def _abandon_stale(context: TurnContext) -> None:
    """Abandon tasks that have waited longer than the domain allows (FS-13)."""
    older_than = context.world.domain.config.flow_management.abandon_after_s
    stale = context.state.stack.find_abandoned(older_than, context.now)
    if stale:
        context.state.stack.abandon(older_than, context.now)
        context.state.forget_later(*(flow.flow_id for flow in stale))
        for flow in stale:
            context.state.ambiguity.resolve(flow_id=flow.flow_id)
            context.tell(NoticeKind.ABANDONED, flow_id=flow.flow_id, done=done_by(context, flow))
