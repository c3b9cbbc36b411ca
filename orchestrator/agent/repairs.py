"""What an operator's repairs do to a session: the same in a preview and in the turn that commits them.

Nothing here calls a tool. Repairs are made at the epoch that was looked at, and break nothing that has to hold (RT-29).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.changes.correction import correct
from orchestrator.dialogue.changes.repair import repair
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL, AWAITING_CONTEXT, WAITING
from orchestrator.dialogue.records import EffectStatus
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Domain
from orchestrator.errors import Refused
from orchestrator.pex.calls.consent import (
    CANDIDATE,
    GRANT,
    drop_candidate,
    fingerprint,
    read_candidate,
    write_candidate,
)
from orchestrator.res.wording import name_doing
from orchestrator.tools.toolbox import ToolData, check_result, write_envelope
from orchestrator.turns.approval import PERSON, ApprovalStatus, ClosedApproval
from orchestrator.turns.effect import OPEN, LedgerEntry, LedgerStatus
from orchestrator.turns.repair import Change, Drop, Fill, HandBack, Mark, Mend, Resume, Say, TakeOver
from orchestrator.types import Epoch, Json, JsonObject, SessionId

GO_ON = "Shall I go on?"


@dataclass(frozen=True, slots=True)
class Place:
    """Where repairs are made: the stored state and its epoch, and the session's ledger by fingerprint.

    `by`: who makes them. `now`: unix seconds.
    """

    session_id: SessionId
    domain: Domain
    before: JsonObject
    epoch: Epoch
    ledger: Mapping[str, LedgerEntry]
    by: str
    now: float


@dataclass(slots=True)
class Outcome:
    """What repairs come to. `after`: the state; `done`: what they change, in sentences; `told`: to the user.

    `refused`: why they cannot be made. `left`: flows that leave the stack. `marked`: lines of the ledger as they are
    to be. `offered`: flows whose offer the user may still say yes to.
    """

    after: DialogueState
    done: list[str] = field(default_factory=list[str])
    told: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    left: list[BaseFlow] = field(default_factory=list[BaseFlow])
    marked: list[LedgerEntry] = field(default_factory=list[LedgerEntry])
    closed: list[ClosedApproval] = field(default_factory=list[ClosedApproval])
    offered: set[str] = field(default_factory=set[str])


def make_repairs(place: Place, changes: Sequence[Change]) -> Outcome:
    """Make the changes in their order, and see what is wrong afterwards that was not before."""
    outcome = Outcome(load_state(place, place.before))
    wrong = find_faults(outcome.after)
    for change in changes:
        _KINDS[type(change)](place, outcome, change)
    outcome.refused += [fault for fault in find_faults(outcome.after) if fault not in wrong]
    if outcome.told:
        _tell(outcome)
    outcome.after.note_plan()
    return outcome


def load_state(place: Place, body: JsonObject) -> DialogueState:
    """Read a state as the turn at work would. Raises Refused for one that cannot be read."""
    flows = place.domain.flows
    try:
        state = DialogueState.from_dict(body, flows) if body else DialogueState.new(place.session_id)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Refused(
            "The stored state cannot be read: roll the session back to an earlier epoch."
        ) from error
    if not state.follow(Epoch(place.epoch + 1)):
        for flow in state.stack.flows:
            drop_candidate(flow)
    return state


def _tell(outcome: Outcome) -> None:
    """Put what is told into the conversation. An older offer is made anew before a yes counts (AM-3)."""
    state = outcome.after
    state.begin_turn()
    state.say("agent", "\n\n".join(outcome.told))
    for flow in state.stack.flows:
        if flow.flow_id not in outcome.offered:
            drop_candidate(flow)


def find_faults(state: DialogueState) -> list[str]:
    """Say what must not be in a state: its stack, and what refers to flows that are gone (FS-8, PL-4, PX-17)."""
    there = {"", *(flow.flow_id for flow in state.stack.flows)}
    loose = [approval.tool_id for approval in state.approvals if approval.flow_id not in there]
    asked = [
        entry.slot or entry.level for entry in state.ambiguity.open if (entry.flow_id or "") not in there
    ]
    return [
        *state.stack.check(),
        *(f"The approval of {tool_id} belongs to a flow that is gone." for tool_id in loose),
        *(f"The question about {name} belongs to a flow that is gone." for name in asked),
    ]


def _find(outcome: Outcome, named: str) -> BaseFlow | None:
    """Find a flow that has not ended, by its identifier or its dact."""
    stack = outcome.after.stack
    flow = stack.get(named) or stack.find(named)
    if flow is None or flow.is_finished:
        outcome.refused.append(f"No task {named} waits or is at work.")
        return None
    return flow


def _fill(place: Place, outcome: Outcome, change: Fill) -> None:
    flow = _find(outcome, change.flow)
    if flow is None:
        return
    value = _name_known(place, outcome, flow, change)
    corrected = correct(flow, {change.slot: value}, source=SlotSource.OPERATOR)
    outcome.refused += [problem.why for problem in corrected.problems]
    if not corrected.changed and not corrected.problems:
        outcome.refused.append(f"The {change.slot} of {flow.dact} is {value} already.")
    _take_back_consent(outcome, flow)
    if flow.status == AWAITING_APPROVAL:
        outcome.after.stack.unpark(flow, place.now)
    for entry in [one for one in outcome.after.ambiguity.open if one.flow_id == flow.flow_id]:
        if entry.slot in {None, change.slot}:
            outcome.after.ambiguity.resolve(entry)
    cleared = f" Emptied: {', '.join(corrected.cleared)}." if corrected.cleared else ""
    outcome.done.append(f"The {change.slot} of {flow.dact} becomes {flow.value(change.slot)}.{cleared}")
    named = change.slot.replace("_", " ")
    outcome.told.append(f"The {named} for {name_doing(flow)} is {change.value} now.")
    _ask_to_go_on(outcome, flow)


def _ask_to_go_on(outcome: Outcome, flow: BaseFlow) -> None:
    """Ask for a yes after which the flow is carried out, and itself asks before it does anything that lasts."""
    state = outcome.after
    if state.person is None and state.stack.active is flow:
        entry = state.ambiguity.declare(Level.CONFIRMATION, flow_id=flow.flow_id, metadata={"about": "retry"})
        entry.put(GO_ON)
        outcome.told.append(GO_ON)


def _name_known(place: Place, outcome: Outcome, flow: BaseFlow, change: Fill) -> Json:
    """Name a value as the slot holds it, where its entity lists what there is."""
    spec = flow.spec.slots.get(change.slot)
    entity = place.domain.entities.get(spec.entity) if spec is not None and spec.entity else None
    if spec is None or entity is None or not isinstance(change.value, str):
        return change.value
    said = change.value.casefold()
    for known in entity.values:
        if said in {name.casefold() for name in (known.canonical, known.name, *known.aliases)}:
            return known.canonical
    own = outcome.after.intake.entities.get(entity.name, {})
    if not spec.open and change.value not in own:
        outcome.refused.append(f"There is no {entity.name} {change.value}.")
    return change.value


def _take_back_consent(outcome: Outcome, flow: BaseFlow) -> None:
    """What was agreed to is no longer the call to be made: the candidate, the grant, the approval (PX-17)."""
    drop_candidate(flow)
    granted = flow.notes.pop(GRANT, None)
    void = [approval.approval_id for approval in outcome.after.void_approvals(flow.flow_id)]
    for approval_id in [*void, *([granted["approval_id"]] if granted else [])]:
        outcome.closed.append(ClosedApproval(approval_id, ApprovalStatus.VOID))


def _drop(place: Place, outcome: Outcome, change: Drop) -> None:
    flow = _find(outcome, change.flow)
    if flow is None:
        return
    state = outcome.after
    for gone in state.stack.cancel(flow):
        _take_back_consent(outcome, gone)
        state.forget_later(gone.flow_id)
    outcome.left += state.archive(state.stack.pop_finished(place.now))
    outcome.done.append(f"{flow.dact} is given up.")
    outcome.told.append(f"I have stopped {name_doing(flow)}.")
    if state.stack.active is not None:
        _ask_to_go_on(outcome, state.stack.active)


def _resume(place: Place, outcome: Outcome, change: Resume) -> None:
    flow = _find(outcome, change.flow)
    if flow is None:
        return
    if flow.status == AWAITING_APPROVAL:
        outcome.refused.append(f"{flow.dact} waits for an approval: grant or deny that.")
        return
    top = outcome.after.stack.resume(flow, place.now, reason="an operator has resumed another task")
    if top.status == AWAITING_CONTEXT:
        top.notes.pop(WAITING, None)
        outcome.after.stack.unpark(top, place.now)
    outcome.done.append(f"{top.dact} comes to the top.")
    outcome.told.append(f"Back to {name_doing(top)}.")
    _ask_to_go_on(outcome, top)


def _mend(place: Place, outcome: Outcome, _change: Mend) -> None:
    """Put the stored state right; the flows keep what the changes before this one have given them."""
    mended, wrong = repair(outcome.after.serialize()) if place.before else ({}, [])
    there = {"", *(flow["flow_id"] for flow in mended.get("stack", ()))}
    asked = outcome.after.ambiguity.open
    loose = [entry for entry in asked if (entry.flow_id or "") not in there]
    if not wrong and not loose:
        outcome.refused.append("There is nothing in the stored state that has to be mended.")
        return
    kept = {approval["approval_id"] for approval in mended["approvals"]}
    gone = [one.approval_id for one in outcome.after.approvals if one.approval_id not in kept]
    outcome.closed += [ClosedApproval(approval_id, ApprovalStatus.VOID) for approval_id in gone]
    outcome.after = load_state(place, mended)
    for entry in loose:
        outcome.after.ambiguity.resolve(flow_id=entry.flow_id)
    outcome.done += [*wrong, *(f"A question of {entry.flow_id} is closed." for entry in loose)]


def _mark(place: Place, outcome: Outcome, change: Mark) -> None:
    entry = place.ledger.get(change.fingerprint)
    if entry is None:
        outcome.refused.append(f"The ledger has no effect {change.fingerprint}.")
        return
    status = _judge(entry.status, done=change.done)
    spec = place.domain.tools.get(entry.tool_id)
    wrong = check_result(spec, change.result) if spec is not None and status is LedgerStatus.DONE else None
    if wrong is not None and status is not entry.status:
        outcome.refused.append(f"That is no result of {entry.tool_id}: {wrong}.")
        return
    if status is not entry.status:  # a turn that is taken up again finds it so
        result = write_envelope(ToolData(change.result)) if change.done else None
        outcome.marked.append(replace(entry, status=status, result=result))
    _settle_note(outcome, change, entry)
    outcome.done.append(f"{entry.tool_id} of {entry.flow_id} is marked as {status}.")
    name = spec.name if spec is not None else entry.tool_id
    outcome.told.append(f"It has been looked into: “{name}” {_FOUND[status]}.")
    _offer_anew(outcome, entry)


_FOUND = {
    LedgerStatus.DONE: "was done",
    LedgerStatus.FAILED: "was not done",
    LedgerStatus.COMPENSATED: "has been undone",
}


def _judge(status: LedgerStatus, *, done: bool) -> LedgerStatus:
    """What the ledger says from now on."""
    if done:
        return LedgerStatus.DONE
    if status is LedgerStatus.DONE:
        return LedgerStatus.COMPENSATED
    return LedgerStatus.FAILED if status in OPEN else status


def _settle_note(outcome: Outcome, change: Mark, entry: LedgerEntry) -> None:
    """Let the state know of the effect what the ledger knows."""
    for note in outcome.after.effects:
        if note.fingerprint == entry.fingerprint:
            known = EffectStatus.FINISHED if change.done else EffectStatus.COMPENSATED
            outcome.after.note_effect(replace(note, status=known))


def _offer_anew(outcome: Outcome, entry: LedgerEntry) -> None:
    """Ask for a plain yes where it was asked whether to do it again: the ledger answers what was done (RT-10)."""
    state = outcome.after
    flow = state.stack.get(entry.flow_id)
    candidate = read_candidate(state, flow) if flow is not None else None
    if flow is None or candidate is None or candidate.tool_id != entry.tool_id:
        return
    named = fingerprint(state, flow, candidate.tool_id, candidate.arguments)
    candidate = replace(candidate, fingerprint=named, again=False, confirmed=False)
    write_candidate(flow, candidate)
    asked = state.ambiguity.find(level=Level.CONFIRMATION, flow_id=flow.flow_id, slot=None)
    known = asked.metadata if asked is not None else {}
    metadata = {**known, "about": CANDIDATE, CANDIDATE: candidate.fingerprint}
    entry_of_yes = state.ambiguity.declare(Level.CONFIRMATION, flow_id=flow.flow_id, metadata=metadata)
    entry_of_yes.put(GO_ON)
    outcome.offered.add(flow.flow_id)
    if flow is state.stack.active:
        outcome.told.append(GO_ON)


def _take_over(place: Place, outcome: Outcome, _change: TakeOver) -> None:
    state = outcome.after
    if state.person is not None:
        outcome.refused.append(f"{state.person} has taken over already.")
        return
    state.leave_to(place.by)
    for approval in [one for one in state.approvals if one.tool_id == PERSON]:
        state.close_approval(approval)
        outcome.closed.append(ClosedApproval(approval.approval_id, ApprovalStatus.VOID))
    outcome.done.append(f"{place.by} answers in place of the assistant.")
    outcome.told.append("A person has joined and answers you here from now on.")


def _say(place: Place, outcome: Outcome, change: Say) -> None:
    if outcome.after.person != place.by:
        outcome.refused.append("Only who has taken over speaks to the user.")
        return
    outcome.done.append("The user is told what the person says.")
    outcome.told.append(change.text)


def _hand_back(_place: Place, outcome: Outcome, _change: HandBack) -> None:
    if outcome.after.person is None:
        outcome.refused.append("Nobody has taken over.")
        return
    outcome.done.append(f"The assistant answers in place of {outcome.after.person} again.")
    outcome.after.leave_to(None)
    outcome.told.append("You are talking to the assistant again. How can I help?")


_KINDS: Mapping[type, Callable[[Place, Outcome, Any], None]] = {
    Fill: _fill,
    Drop: _drop,
    Resume: _resume,
    Mend: _mend,
    Mark: _mark,
    TakeOver: _take_over,
    Say: _say,
    HandBack: _hand_back,
}
