"""Let the message act on the stack, by its kind."""

from __future__ import annotations

import re

from orchestrator.agent.approvals import DECIDING, expire_approvals, take_decision
from orchestrator.agent.messages import MESSAGES
from orchestrator.agent.messages.correction import DECISIONS, PROPOSED, changed_slots, decide
from orchestrator.agent.messages.displayed_rows import follow_row
from orchestrator.agent.modules import Modules
from orchestrator.agent.open_question import leave_open, reject, says_yes
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import done_by, put_off
from orchestrator.dialogue.ambiguity import Ambiguity, Option
from orchestrator.dialogue.changes.inheritance import REFERRED
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import MessageKind, Source, Understanding
from orchestrator.nlu.leftovers import name_meant
from orchestrator.nlu.plain_yes import is_plain_yes, only_agrees
from orchestrator.pex.calls.consent import doubt, read_candidate
from orchestrator.plans.edits import ABOUT_DONE, KEEP
from orchestrator.types import JsonObject, is_object

_HANDLERS = dict(MESSAGES)
_ANOTHER = re.compile(r"\b(an?|another|new|some)\b", re.IGNORECASE)
"""What a request for one more begins with: "take a note" is no yes to the note that is offered."""

CHANGES_NOTHING = frozenset({MessageKind.DIGRESSION, MessageKind.CHITCHAT, MessageKind.UNKNOWN})


async def dispatch(turn: RunningTurn, _modules: Modules) -> None:
    """Let the message act on the stack; `turn.carry_on` says whether PEX has something to do."""
    _abandon_stale(turn)
    if turn.changes.state.approvals:
        expire_approvals(turn)
    understood = turn.understanding
    if understood is None:
        leave_open(turn)
        return
    if understood.rejection is not None:
        reject(turn, understood.rejection.value)
        return
    if understood.kind is not MessageKind.DIGRESSION:
        turn.changes.state.end_digression()
    if (decision := _read_decision(understood)) is not None:
        decide(turn, decision)
        return
    if (option := _find_named_option(turn, understood)) is not None:
        _propose(turn, option)
        return
    if _is_over(turn, understood):
        turn.changes.remark(RemarkKind.OVER)
        leave_open(turn)
        return
    if understood.kind in DECIDING and await take_decision(turn, understood):
        return
    _drop_loose_questions(turn, understood)
    for why in understood.assumed:
        turn.changes.remark(RemarkKind.ASSUMED, why=why)
    kind = MessageKind.CONFIRMATION if _repeats_the_offer(turn, understood) else understood.kind
    _HANDLERS[kind](turn, understood)
    _note_work(turn, understood)


def _note_work(turn: RunningTurn, understood: Understanding) -> None:
    """Note that a message was about a task: for its turns, its consent, and the row that it is about.

    What else the message asks for is kept until that is done.
    """
    active = turn.changes.state.stack.active
    if understood.later:
        put_off(turn, understood.later)
    if active is None:
        return
    active.note_turn(turn.work.turn_id)
    if turn.changes.state.shown is not None:
        follow_row(turn, active)
    if understood.by_model_alone and understood.kind not in CHANGES_NOTHING:
        doubt(active)
    if understood.refers:
        active.notes[REFERRED] = True


def _read_decision(understood: Understanding) -> str | None:
    """Read what the user chose about what was done; a model that names a choice has not made it."""
    chosen = understood.kind is MessageKind.CORRECTION and understood.source is not Source.SYSTEM2
    return understood.target if chosen and understood.target in DECISIONS else None


def _find_named_option(turn: RunningTurn, understood: Understanding) -> Option | None:
    """Find what a model takes the user to have decided about what was done, by the words of the option."""
    entry = turn.changes.state.ambiguity.current if understood.source is Source.SYSTEM2 else None
    if entry is None or entry.metadata.get("about") != ABOUT_DONE:
        return None
    return next((option for option in entry.options if option.label == understood.target), None)


def _propose(turn: RunningTurn, named: Option) -> None:
    """Leave it as it is when a model says so; anything else only after a yes of the user's (RT-12)."""
    entry = turn.changes.state.ambiguity.current
    if entry is None or named.action_name == KEEP:
        decide(turn, KEEP)
        return
    turn.changes.remark(RemarkKind.ASSUMED, why=name_meant(named.label))
    turn.changes.state.ambiguity.declare(
        entry.level,
        options=entry.options,
        turn_id=turn.work.turn_id,
        metadata={**entry.metadata, PROPOSED: named.action_name},
    )


def _repeats_the_offer(turn: RunningTurn, understood: Understanding) -> bool:
    """Say whether a request is a plain yes to the candidate that is open: "book the flight to Rome, please".

    It is none to doing once more what may have been done already (RT-9): whoever was stopped just asks again.
    """
    state = turn.changes.state
    entry = state.ambiguity.current
    flow = None if entry is None or "candidate" not in entry.metadata else state.stack.active
    if entry is None or flow is None or entry.flow_id != flow.flow_id:
        return False
    match understood.kind:
        case MessageKind.TASK:
            alike = understood.flows[0].dact == flow.dact and not changed_slots(flow, understood.slots)
        case MessageKind.DENIAL | MessageKind.CANCELLATION:
            # a model has heard a no, and the words refuse nothing
            alike = understood.by_model_alone and not understood.slots and only_agrees(understood.text)
        case MessageKind.UNKNOWN | MessageKind.CORRECTION:
            # "make it so", and not "make it" with what was offered
            alike = not understood.slots and is_plain_yes(understood.text, "")
        case _:
            alike = False
    if not alike or understood.is_click or not says_yes(turn, understood):
        return False
    if _ANOTHER.search(understood.text):
        return False
    candidate = read_candidate(state, flow)
    return candidate is not None and not candidate.again


def _is_over(turn: RunningTurn, understood: Understanding) -> bool:
    """Say whether a click is about something that is not open any more, or never was (PX-18)."""
    given = (turn.work.input.action or {}).get("payload")
    if understood.source is not Source.ACTION or not is_object(given):
        return False
    state, flow_id = turn.changes.state, given.get("flow_id")
    if understood.kind in DECIDING and "approval_id" not in given:
        return not _answers(state.ambiguity.current, understood.kind, given)
    if flow_id is None or understood.target in DECISIONS:
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
    """Say whether a clicked yes or no names the question that is open; a yes to a candidate has to."""
    if entry is None:
        return "flow_id" not in given
    candidate = entry.metadata.get("candidate")
    named = kind is MessageKind.CONFIRMATION or "candidate" in given
    return given.get("flow_id", entry.flow_id) == entry.flow_id and (
        not named or given.get("candidate") == candidate
    )


def _drop_loose_questions(turn: RunningTurn, understood: Understanding) -> None:
    """A question that belongs to no flow is over once the user does something else."""
    state, kind = turn.changes.state, understood.kind
    says_nothing = kind in CHANGES_NOTHING or (kind is MessageKind.CORRECTION and not understood.slots)
    gives_it_up = kind is MessageKind.CANCELLATION and not state.stack.live()
    if says_nothing or gives_it_up or kind in DECIDING:
        return
    for entry in [entry for entry in state.ambiguity.open if entry.flow_id is None]:
        state.ambiguity.resolve(entry)


def _abandon_stale(turn: RunningTurn) -> None:
    """Tasks that waited longer than the domain allows are given up (FS-13)."""
    older_than = turn.context.world.domain.config.flow_management.abandon_after_s
    stale = turn.changes.state.stack.find_abandoned(older_than, turn.context.now)
    if stale:
        turn.changes.state.stack.abandon(older_than, turn.context.now)
        turn.changes.state.forget_later(*(flow.flow_id for flow in stale))
        for flow in stale:
            turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
            turn.changes.remark(RemarkKind.ABANDONED, flow_id=flow.flow_id, done=done_by(turn, flow))
