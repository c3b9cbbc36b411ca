"""Turns that skip NLU and, in most cases, PEX.

These turns handle proposals from background flows (IF-12), gathered context (PX-16), operators' repairs, and
messages to an operator who has taken over (RT-35).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from orchestrator.agent.context_wait import end_waiting, find_waiting, why_it_waited
from orchestrator.agent.failure import cascade
from orchestrator.agent.modules import Modules
from orchestrator.agent.repairs import Place, make_repairs
from orchestrator.agent.running import RunningTurn, Step
from orchestrator.agent.steps.archive import archive
from orchestrator.agent.steps.carry_out import carry_out
from orchestrator.agent.steps.load import decode
from orchestrator.agent.steps.record import make_commit, utterances_of
from orchestrator.dialogue.changes.repair import repair
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Label
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.pex.execution import Recover, Recovery
from orchestrator.res.templates import word_for
from orchestrator.runtime.journal import Journal
from orchestrator.saying import say
from orchestrator.tools.trifecta import join_labels
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.event import Event
from orchestrator.turns.lease import AGENT, OPERATOR, Lease, TurnCommit, Utterance, Work
from orchestrator.turns.repair import GONE_ON, REPAIRED, Mark, SignedOrder
from orchestrator.types import FlowId, JsonObject, ToolId, is_list, is_object

PROPOSAL = "proposal"
"""Action name of system turns that deliver a proposal."""


class Decision(StrEnum):
    APPLIED = "applied"
    REBASED = "rebased"
    """The proposal was applied, although the session has had new turns since the proposal."""
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on a proposal.

    `left`: flows that left the stack. `mended`: the repaired state, or None if no repair was applied.
    """

    decision: Decision
    reason: str
    left: tuple[BaseFlow, ...] = ()
    mended: JsonObject | None = None


async def resume_with_findings(turn: RunningTurn, modules: Modules) -> tuple[Step, ...] | TurnCommit:
    """Return the steps that resume the waiting flow.

    If no flow waits for the findings, or another flow is active, return a commit without a reply. In the
    second case, the waiting flow gets the findings.
    """
    flow, gathering = _find(turn), modules.ports.gather
    if flow is not None and gathering is not None and turn.context.state.stack.active is None:
        return go_on, carry_out, archive
    what = "no flow is waiting for this context"
    if flow is not None and gathering is not None:
        await end_waiting(turn.context, gathering, flow, late=True)
        what = "stored; another task is active"
    turn.context.state.take_back_turn()
    return commit_quietly(turn, {"context": what})


def commit_quietly(turn: RunningTurn, result: JsonObject) -> TurnCommit:
    """Return a commit that has no reply."""
    state, before = turn.context.state, turn.context.world.prior_state
    return _commit(turn.lease, state, before, result, events=turn.context.log.events)


def _commit(
    lease: Lease,
    state: DialogueState,
    before: JsonObject,
    result: JsonObject,
    **more: Any,
) -> TurnCommit:
    numbered = {"seq": lease.work.seq, "epoch": lease.epoch + 1, **result}
    return make_commit(before, state.write(), numbered, snapshot=not before, **more)


def keep_for_person(turn: RunningTurn, modules: Modules) -> TurnCommit:
    """Return a commit that stores the user's message for the operator who has taken over."""
    given, state = turn.work.input, turn.context.state
    reply = word_for(modules.domain, say("passed_on"))
    state.converse(given.text or "", reply, modules.domain.config.memory.max_history_messages)
    turn.context.log.event("answer", reply=reply)
    result: JsonObject = {"reply": reply, "person": state.person}
    before, events = turn.context.world.prior_state, turn.context.log.events
    return _commit(turn.lease, state, before, result, events=events, utterances=utterances_of(given, reply))


async def commit_repairs(lease: Lease, work: Work, journal: Journal, modules: Modules) -> TurnCommit:
    """Apply an operator's repairs.

    Return a commit with the changes, or with the reasons if any repair is rejected.
    """
    order = SignedOrder.model_validate(work.input.payload)
    state, before = decode(lease, modules)
    named = [one.fingerprint for one in order.repairs if isinstance(one, Mark)]
    ledger = {one.fingerprint: one for name in named if (one := await find_line(lease, journal, name))}
    now = work.accepted_at
    place = Place(lease.session_id, modules.domain, before, lease.epoch, ledger, order.by, now)
    made = make_repairs(place, order.repairs)
    refused = made.refused if order.epoch == lease.epoch else [GONE_ON]
    told = "\n\n".join(made.told)
    record = order.model_dump(mode="json") | {"decision": Decision.DROPPED.value, "refused": refused}
    if not refused:
        state = made.after
        for entry in made.marked:
            await journal.lane.resolve_effect(lease, entry)
        record |= {"decision": Decision.APPLIED.value, "done": made.done}
    event = Event(lease.session_id, REPAIRED, work.turn_id, record)
    if refused:
        return _commit(lease, state, before, {"repair": record}, events=(event,))
    popped = [Event(lease.session_id, "flow_popped", work.turn_id, _name_end(flow)) for flow in made.left]
    answer = [Event(lease.session_id, "answer", work.turn_id, {"reply": told})] if told else []
    signed = Utterance(OPERATOR, "action", orjson.dumps(order.model_dump(mode="json")).decode())
    return _commit(
        lease,
        state,
        before,
        {"repair": record, "reply": told or None},
        events=(event, *popped, *answer),
        left=made.left,
        utterances=(signed, Utterance(AGENT, "text", told)) if told else (),
        closed_approvals=tuple(made.closed),
        plans=(*made.left, *state.stack.flows),
    )


async def find_line(lease: Lease, journal: Journal, fingerprint: str) -> LedgerEntry | None:
    """Return a ledger entry from this session, but not from its forks, or None."""
    own = Effect(fingerprint, FlowId(""), ToolId(""), {}, {}, judge=lambda _: LedgerStatus.UNKNOWN)
    return await journal.lane.find_effect(lease, own)


def _name_end(flow: BaseFlow) -> JsonObject:
    return {"dact": flow.dact, "flow_id": flow.flow_id, **flow.status.serialize()}


def decide_proposal(lease: Lease, work: Work, modules: Modules) -> TurnCommit:
    """Return a commit that applies or drops a proposal. Malformed proposals are dropped."""
    given = work.input.payload
    state, before = decode(lease, modules)
    fresh = given.get("epoch") == lease.epoch
    verdict = _judge(state, given, fresh=fresh, now=work.accepted_at, before=before)
    if verdict.mended is not None:
        state = DialogueState.from_dict(verdict.mended, modules.domain.flows)
    told: JsonObject = {name: given.get(name) for name in ("flow", "run_id", "kind", "epoch")}
    told |= {"decision": verdict.decision.value, "reason": verdict.reason}
    event = Event(lease.session_id, "proposal_decided", work.turn_id, told)
    return _commit(lease, state, before, {"proposal": told}, events=(event,), left=verdict.left)


def _judge(
    state: DialogueState, given: JsonObject, *, fresh: bool, now: float, before: JsonObject
) -> Verdict:
    change = given.get("change")
    if not is_object(change):
        return Verdict(Decision.DROPPED, "The proposal contains no change.")
    match given.get("kind"):
        case "summary":
            return _summarize(state, change, fresh=fresh)
        case "abandon":
            return _abandon(state, change, now, fresh=fresh)
        case "repair":
            return _repair(before, change, fresh=fresh)
        case _:
            return Verdict(Decision.DROPPED, "Unknown kind of proposal.")


def _summarize(state: DialogueState, change: JsonObject, *, fresh: bool) -> Verdict:
    """Apply a summary. It stays valid even if the session has had newer turns."""
    text, through = change.get("text"), change.get("through_turn")
    if not isinstance(text, str) or type(through) is not int or not 0 < through <= state.turn:
        return Verdict(Decision.DROPPED, "The summary doesn't refer to turns in this session.")
    covered = state.history.summarized_through
    if covered >= through:
        return Verdict(Decision.DROPPED, f"A summary already covers the turns through {covered}.")
    state.summarize(text, through)
    labels = change.get("labels")
    if is_list(labels):
        join_labels(
            state, [label for label in labels if label in set(Label)], "an earlier part of this conversation"
        )
    reason = f"The summary covers the turns through {through}."
    return Verdict(Decision.APPLIED if fresh else Decision.REBASED, reason)


def _abandon(state: DialogueState, change: JsonObject, now: float, *, fresh: bool) -> Verdict:
    limit = change.get("older_than_s")
    if not isinstance(limit, int | float) or limit < 0:
        return Verdict(Decision.DROPPED, "The proposal does not specify a time limit.")
    gone = state.stack.abandon(limit, now)
    if not gone:
        return Verdict(Decision.DROPPED, "No task has been interrupted for that long.")
    left = tuple(state.archive(state.stack.pop_finished(now)))
    names = ", ".join(flow.dact for flow in gone)
    return Verdict(Decision.APPLIED if fresh else Decision.REBASED, f"Abandoned: {names}.", left)


def _repair(before: JsonObject, change: JsonObject, *, fresh: bool) -> Verdict:
    """Apply a repair.

    The session must be unchanged since the proposal, and the repair must make exactly the proposed changes.
    """
    if not fresh:
        return Verdict(Decision.DROPPED, "The session has changed in the meantime.")
    mended, wrong = repair(before) if before else ({}, [])
    if not wrong:
        return Verdict(Decision.DROPPED, "There is nothing to repair.")
    if diff(before, mended) != change.get("diff"):
        return Verdict(Decision.DROPPED, "The repair would make undeclared changes.")
    return Verdict(Decision.APPLIED, " ".join(wrong), mended=mended)


async def go_on(turn: RunningTurn, modules: Modules) -> None:
    """Resume the flow that waited for context. If nothing was found, switch to another flow or ask the user."""
    flow = _find(turn)
    assert flow is not None
    assert modules.ports.gather is not None
    failure = why_it_waited(flow)
    turn.context.state.stack.resume(flow, turn.context.now, reason="the gathered context has arrived")
    if await end_waiting(turn.context, modules.ports.gather, flow, late=True):
        turn.context.changes.carry_on = True
        return
    turn.context.changes.climbed.add((flow.flow_id, Recovery.REROUTE.value))
    turn.context.changes.carry_on = await cascade(turn.context, modules, Recover(Recovery.REROUTE, failure))


def _find(turn: RunningTurn) -> BaseFlow | None:
    given = turn.work.input.payload
    wanted = (given.get("flow_id"), given.get("run_id"))
    waiting = find_waiting(turn.context)
    runs = {flow.flow_id: (flow.progress.waits_for or {}).get("run_id") for flow in waiting}
    return next((flow for flow in waiting if (flow.flow_id, runs[flow.flow_id]) == wanted), None)
