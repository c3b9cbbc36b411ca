"""Suggest repairs of a session to operators, and apply repairs to its state.

Repairs do not call tools, and apply to one epoch. If one is invalid, all are rejected (RT-35). An operator who takes
over answers the user until handing back the session (AM-5). The gateway previews repairs, so this module does not
import modules that run turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.dialogue.consent import (
    drop_candidate,
    fingerprint,
    open_state,
    propose,
    read_candidate,
    take_grant,
)
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import AWAITING_RESULT
from orchestrator.dialogue.questions import CallQuestion, Level, PendingCall, TryAgain
from orchestrator.dialogue.records import EffectStatus, PendingApproval
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Domain
from orchestrator.errors import FailureCategory, Refused
from orchestrator.res.templates import word_for
from orchestrator.res.wording import name_doing
from orchestrator.saying import say
from orchestrator.tools.toolbox import ToolData, ToolError, check_result, write_envelope
from orchestrator.turns.approval import PERSON, ApprovalStatus, ClosedApproval
from orchestrator.turns.effect import OPEN, LedgerEntry, LedgerStatus
from orchestrator.turns.repair import Change, Drop, HandBack, Mark, Say, TakeOver
from orchestrator.types import Epoch, Json, JsonObject, SessionId

GO_ON = say("shall_go_on")


@dataclass(frozen=True, slots=True)
class Place:
    """The target of repairs: the stored state, its epoch, and the session's ledger entries by fingerprint.

    `by`: the operator. `now`: Unix seconds.
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
    """The result of repairs.

    `after`: the new state. `done`: changes, as sentences. `told`: messages to the user. `refused`: reasons
    for rejections. `left`: flows that left the stack. `marked`: updated ledger entries. `closed`: closed
    approvals. `offered`: IDs of flows whose offer the user can still accept.
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
    """Apply the changes in order. Rejected changes and newly violated invariants are listed in `refused`."""
    outcome = Outcome(load_state(place))
    wrong = find_faults(outcome.after)
    for change in changes:
        try:
            _KINDS[type(change)](place, outcome, change)
        except Refused as error:
            outcome.refused.append(str(error))
    outcome.refused += [fault for fault in find_faults(outcome.after) if fault not in wrong]
    if outcome.told:
        _tell(outcome)
    outcome.after.note_plan()
    return outcome


def load_state(place: Place) -> DialogueState:
    """Decode a stored state. Raises Refused if the state cannot be decoded."""
    try:
        return open_state(place.before, place.session_id, place.domain.flows, Epoch(place.epoch + 1))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Refused(
            "The stored state cannot be read; roll the session back to an earlier version."
        ) from error


def _tell(outcome: Outcome) -> None:
    """Add messages to the conversation, and withdraw earlier offers that these messages do not repeat (AM-3)."""
    state = outcome.after
    state.begin_turn()
    state.say("agent", "\n\n".join(outcome.told))
    for flow in state.stack.flows:
        if flow.flow_id not in outcome.offered:
            drop_candidate(flow)


def find_faults(state: DialogueState) -> list[str]:
    """List violated invariants of the stack, and references to missing flows (FS-8, PL-4, PX-17)."""
    there = {"", *(flow.flow_id for flow in state.stack.flows)}
    loose = [approval.tool_id for approval in state.approvals if approval.flow_id not in there]
    asked = [
        f"The question about {entry.slot}" if entry.slot else "An open question"
        for entry in state.ambiguity.open
        if (entry.flow_id or "") not in there
    ]
    return [
        *state.stack.check(),
        *(f"The approval of {tool_id} belongs to a flow that no longer exists." for tool_id in loose),
        *(f"{question} belongs to a flow that no longer exists." for question in asked),
    ]


def _find(outcome: Outcome, named: str) -> BaseFlow:
    stack = outcome.after.stack
    flow = stack.get(named) or stack.find(named)
    if flow is None or flow.is_finished:
        raise Refused(f"No open task {named!r} found.")
    return flow


def _ask_to_continue(place: Place, outcome: Outcome, flow: BaseFlow) -> None:
    """If the flow is active and no operator has taken over, ask the user whether to continue.

    The flow asks again before any irreversible effect.
    """
    state = outcome.after
    if state.person is None and state.stack.active is flow:
        entry = state.ambiguity.declare(TryAgain(flow_id=flow.flow_id))
        entry.put(word_for(place.domain, GO_ON))
        outcome.told.append(word_for(place.domain, GO_ON))


def _withdraw_consent(outcome: Outcome, flow: BaseFlow) -> None:
    """Drop the flow's pending call, its grant and its approvals (PX-17)."""
    drop_candidate(flow)
    granted = take_grant(flow)
    void = [approval.approval_id for approval in outcome.after.void_approvals(flow.flow_id)]
    for approval_id in [*void, *([granted.approval_id] if granted else [])]:
        outcome.closed.append(ClosedApproval(approval_id, ApprovalStatus.VOID))


def _drop(place: Place, outcome: Outcome, change: Drop) -> None:
    flow, state = _find(outcome, change.flow), outcome.after
    for gone in state.stack.cancel(flow):
        _withdraw_consent(outcome, gone)
        state.forget_later(gone.flow_id)
    outcome.left += state.archive(state.stack.pop_finished(place.now))
    outcome.done.append(f"{flow.dact} is canceled.")
    outcome.told.append(word_for(place.domain, say("stopped_task", doing=name_doing(flow))))
    if state.stack.active is not None:
        _ask_to_continue(place, outcome, state.stack.active)


def _mark(place: Place, outcome: Outcome, change: Mark) -> None:
    entry = place.ledger.get(change.fingerprint)
    if entry is None:
        raise Refused(f"Side effect {change.fingerprint} not found in the ledger.")
    status = _judge(entry.status, done=change.done)
    spec = place.domain.tools.get(entry.tool_id)
    wrong = check_result(spec, change.result) if spec is not None and status is LedgerStatus.DONE else None
    if wrong is not None and status is not entry.status:
        raise Refused(f"The result doesn't match the output schema of {entry.tool_id}: {wrong}.")
    if status is not entry.status:  # a retried turn reads the entry that was already marked
        result = write_envelope(ToolData(change.result)) if change.done else None
        outcome.marked.append(replace(entry, status=status, result=result))
    _update_note(outcome, change, entry)
    outcome.done.append(f"{entry.tool_id} of {entry.flow_id} is marked as {status}.")
    name = spec.name if spec is not None else entry.tool_id
    outcome.told.append(word_for(place.domain, say("looked_into", tool=name, status=status.value)))
    if not _answer_awaited(place, outcome, change, entry):
        _offer_again(place, outcome, entry)


def _judge(status: LedgerStatus, *, done: bool) -> LedgerStatus:
    if done:
        return LedgerStatus.DONE
    if status is LedgerStatus.DONE:
        return LedgerStatus.COMPENSATED
    return LedgerStatus.FAILED if status in OPEN else status


def _update_note(outcome: Outcome, change: Mark, entry: LedgerEntry) -> None:
    for note in outcome.after.effects:
        if note.fingerprint == entry.fingerprint:
            known = EffectStatus.FINISHED if change.done else EffectStatus.COMPENSATED
            outcome.after.note_effect(replace(note, status=known))


def _answer_awaited(place: Place, outcome: Outcome, change: Mark, entry: LedgerEntry) -> bool:
    """Use the operator's mark as the result that a flow waits for (RT-32).

    Return False if no flow waits for the call.
    """
    state = outcome.after
    flow = state.stack.get(entry.flow_id)
    awaited = flow.progress.awaits if flow is not None else None
    if flow is None or awaited is None or awaited.call != entry.idempotency_key:
        return False
    message = say("found_not_done")
    failed = ToolError(FailureCategory.SERVER_ERROR, message)
    answer = write_envelope(ToolData(change.result) if change.done else failed)
    flow.progress.await_result(replace(awaited, answer=answer))
    state.ambiguity.resolve(flow_id=flow.flow_id)
    if flow.status == AWAITING_RESULT:
        state.stack.unpark(flow, place.now)
    return True


def _offer_again(place: Place, outcome: Outcome, entry: LedgerEntry) -> None:
    """Replace the question about repeating a call with a request to confirm the call (RT-10)."""
    state = outcome.after
    flow = state.stack.get(entry.flow_id)
    candidate = read_candidate(state, flow) if flow is not None else None
    if flow is None or candidate is None or candidate.tool_id != entry.tool_id:
        return
    named = fingerprint(state, flow, candidate.tool_id, candidate.arguments)
    candidate = replace(candidate, fingerprint=named, again=False, agreed=False)
    propose(flow, candidate)
    asked = state.ambiguity.find(level=Level.CONFIRMATION, flow_id=flow.flow_id, slot=None)
    question = PendingCall(
        flow_id=flow.flow_id,
        candidate=candidate.fingerprint,
        shown=asked.about.shown if asked is not None and isinstance(asked.about, CallQuestion) else {},
        arguments=candidate.arguments,
    )
    entry_of_yes = state.ambiguity.declare(question)
    entry_of_yes.put(word_for(place.domain, GO_ON))
    outcome.offered.add(flow.flow_id)
    if flow is state.stack.active:
        outcome.told.append(word_for(place.domain, GO_ON))


def _take_over(place: Place, outcome: Outcome, _change: TakeOver) -> None:
    """Route the session to the operator, and close the requests for an operator."""
    state = outcome.after
    if state.person is not None:  # even if it is this operator
        raise Refused(f"{state.person} has already taken over.")
    state.leave_to(place.by)
    for request in find_requests(state):
        state.close_approval(request)
        outcome.closed.append(ClosedApproval(request.approval_id, ApprovalStatus.VOID))
    outcome.done.append(f"{place.by} answers instead of the assistant.")
    outcome.told.append(word_for(place.domain, say("person_joined")))


def _say(place: Place, outcome: Outcome, change: Say) -> None:
    if outcome.after.person != place.by:
        raise Refused("Only the operator who has taken over can send messages to the user.")
    outcome.done.append("The operator's message is sent to the user.")
    outcome.told.append(change.text)


def _hand_back(place: Place, outcome: Outcome, _change: HandBack) -> None:
    operator = outcome.after.person
    if operator is None:
        raise Refused("No operator has taken over.")
    outcome.after.leave_to(None)
    outcome.done.append(f"The assistant answers again instead of {operator}.")
    outcome.told.append(word_for(place.domain, say("assistant_again")))


_KINDS: Mapping[type, Callable[[Place, Outcome, Any], None]] = {
    Drop: _drop,
    Mark: _mark,
    TakeOver: _take_over,
    Say: _say,
    HandBack: _hand_back,
}


def suggest(place: Place) -> list[JsonObject]:
    """List suggested repairs as ``{repair, why}``: for open ledger entries, flows from the top down, and takeovers."""
    state = load_state(place)
    fits: list[JsonObject] = []
    for entry in place.ledger.values():
        if entry.status in OPEN:
            why, named = f"The outcome of {entry.tool_id} is unknown.", entry.fingerprint
            fits.append(_offer(why, kind="mark", fingerprint=named, done=True, result={}))
            fits.append(_offer(why, kind="mark", fingerprint=named, done=False))
    drops = [
        _offer(f"{flow.dact} is {flow.status}.", kind="drop", flow=flow.flow_id)
        for flow in reversed(state.stack.live())
    ]
    return [*fits, *drops, *_fit_person(state)]


def find_requests(state: DialogueState) -> list[PendingApproval]:
    """List the session's pending requests for an operator."""
    return [approval for approval in state.approvals if approval.tool_id == PERSON]


def _offer(why: str, **repair: Json) -> JsonObject:
    return {"repair": repair, "why": why}


def _fit_person(state: DialogueState) -> Iterator[JsonObject]:
    if state.person is not None:
        yield _offer(f"{state.person} is answering the user.", kind="say", text="")
        yield _offer(f"{state.person} is answering the user.", kind="hand_back")
    elif find_requests(state):
        yield _offer("The user is waiting for a person.", kind="take_over")
