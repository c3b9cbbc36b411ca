"""What the lane makes of an Internal flow's proposal: applied, rebased onto newer turns, or dropped (IF-12).

A proposal comes as a system turn. It says nothing to the user; its decision is the turn's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import orjson

from orchestrator.agent.modules import Decoded, Modules
from orchestrator.agent.steps.archive import as_archived
from orchestrator.agent.steps.load import decode
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.dialogue.records import Label
from orchestrator.dialogue.state import DialogueState, Summary, repair
from orchestrator.dialogue.storage.diff import diff
from orchestrator.tools.trifecta import join_labels
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.turn import TurnInput, TurnKind, TurnStatus
from orchestrator.types import JsonObject

PROPOSAL = "proposal"
"""The action of a system turn that brings one."""


class Decision(StrEnum):
    APPLIED = "applied"
    REBASED = "rebased"
    """Applied, although turns have come since it was made."""
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason`: why it was dropped, or what was done."""

    decision: Decision
    reason: str
    left: tuple[BaseFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class _Proposal:
    """`fresh`: nothing was committed since it was made."""

    change: JsonObject
    fresh: bool
    now: float


_Decide: TypeAlias = Callable[[DialogueState, _Proposal], Verdict]


def is_proposal(given: TurnInput) -> bool:
    """Whether a turn brings a proposal; only the system may."""
    return given.kind is TurnKind.SYSTEM and (given.action or {}).get("name") == PROPOSAL


def decide(lease: Lease, work: Work, modules: Modules) -> TurnCommit:
    """Decide a system turn. Never raises for what a proposal says."""
    state, before = decode(lease, modules)
    payload = (work.input.action or {}).get("payload")
    given = payload if is_object(payload) else {}
    verdict = _judge(state, given, fresh=given.get("epoch") == lease.epoch, now=modules.ports.clock())
    after = state.serialize()
    raw = orjson.dumps(after)
    modules.cache.keep(lease.session_id, Decoded(raw, after, state))
    record: JsonObject = {
        "flow": given.get("flow"),
        "run_id": given.get("run_id"),
        "kind": given.get("kind"),
        "epoch": given.get("epoch"),
        "decision": verdict.decision.value,
        "reason": verdict.reason,
    }
    return TurnCommit(
        status=TurnStatus.DONE,
        state=raw,
        diff=orjson.dumps(diff(before, after)),
        snapshot=not before,
        result={"seq": work.seq, "epoch": lease.epoch + 1, "proposal": record},
        archived=tuple(as_archived(flow) for flow in verdict.left),
        events=(Event(lease.session_id, "proposal_decided", work.turn_id, record),),
    )


def _judge(state: DialogueState, given: JsonObject, *, fresh: bool, now: float) -> Verdict:
    decide_kind = _KINDS.get(str(given.get("kind")))
    change = given.get("change")
    if decide_kind is None or not is_object(change):
        return Verdict(Decision.DROPPED, "It is no proposal that is known here.")
    return decide_kind(state, _Proposal(change, fresh, now))


def _summary(state: DialogueState, proposal: _Proposal) -> Verdict:
    """A summary covers the turns that it names and no others, so newer ones do not make it wrong."""
    text, through = proposal.change.get("text"), proposal.change.get("through_turn")
    if not isinstance(text, str) or type(through) is not int or not 0 < through <= state.turn:
        return Verdict(Decision.DROPPED, "It names no turns of this session.")
    if state.history.summary is not None and state.history.summary.through_turn >= through:
        return Verdict(
            Decision.DROPPED, f"There is a summary through turn {state.history.summary.through_turn}."
        )
    state.history.summary = Summary(text, through)
    labels = proposal.change.get("labels")
    if is_list(labels):
        join_labels(state, [label for label in labels if label in set(Label)], "an earlier part of this talk")
    reason = f"The summary covers the turns up to {through}."
    return Verdict(Decision.APPLIED if proposal.fresh else Decision.REBASED, reason)


def _abandon(state: DialogueState, proposal: _Proposal) -> Verdict:
    """What has been interrupted for too long is looked for anew: a flow that was resumed stays."""
    limit = proposal.change.get("older_than_s")
    if not isinstance(limit, int | float) or limit < 0:
        return Verdict(Decision.DROPPED, "It does not say after which time.")
    gone = state.stack.abandon(limit, proposal.now)
    if not gone:
        return Verdict(Decision.DROPPED, "No task has been interrupted for so long any more.")
    left = tuple(state.archive(state.stack.pop_finished(proposal.now)))
    names = ", ".join(flow.dact for flow in gone)
    return Verdict(Decision.APPLIED if proposal.fresh else Decision.REBASED, f"Abandoned: {names}.", left)


def _repair(state: DialogueState, proposal: _Proposal) -> Verdict:
    """A repair fits exactly the state that was looked at."""
    if not proposal.fresh:
        return Verdict(Decision.DROPPED, "The session has gone on since it was looked at.")
    done = repair(state, proposal.now)
    if not done:
        return Verdict(Decision.DROPPED, "There is nothing that can be repaired.")
    return Verdict(Decision.APPLIED, " ".join(done))


_KINDS: Mapping[str, _Decide] = {"summary": _summary, "abandon": _abandon, "repair": _repair}
