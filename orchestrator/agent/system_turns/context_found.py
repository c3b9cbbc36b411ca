"""The system turn with which a parked flow goes on: its findings are there, or there are none (PX-16).

When nothing waits for them any more, the turn says nothing and changes nothing.
"""

from __future__ import annotations

import orjson

from orchestrator.agent.context_wait import end_waiting, find_waiting, why_it_waited
from orchestrator.agent.failure import cascade
from orchestrator.agent.guard import guarded
from orchestrator.agent.modules import Decoded, Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.steps.archive import archive
from orchestrator.agent.steps.carry_out import carry_out
from orchestrator.agent.steps.load import load
from orchestrator.agent.steps.record import record
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.json_values import is_object
from orchestrator.dialogue.storage.diff import diff
from orchestrator.pex.execution import Recover, Recovery
from orchestrator.ports.memory.context import CONTEXT_READY
from orchestrator.runtime.journal import Journal
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.turn import TurnInput, TurnKind, TurnStatus
from orchestrator.types import JsonObject


def brings_context(given: TurnInput) -> bool:
    """Whether a turn brings findings; only the system may."""
    return given.kind is TurnKind.SYSTEM and (given.action or {}).get("name") == CONTEXT_READY


async def take_context_turn(lease: Lease, work: Work, journal: Journal, modules: Modules) -> TurnCommit:
    """Carry a system turn out. Raises what `Agent.run_turn` does."""
    turn = load(lease, work, journal, modules)
    flow = _find(turn)
    if flow is None or modules.ports.gather is None:
        turn.changes.state.turn -= 1
        return _commit_silently(turn, modules, "nothing waits for it")
    if turn.changes.state.stack.active is not None:
        await end_waiting(turn, modules.ports.gather, flow, late=True)
        turn.changes.state.turn -= 1
        return _commit_silently(turn, modules, "noted; another task is at work")
    for step in (_go_on, carry_out, archive):
        await guarded(step, turn, modules)
    return record(turn, modules)


async def _go_on(turn: RunningTurn, modules: Modules) -> None:
    flow = _find(turn)
    assert flow is not None
    assert modules.ports.gather is not None
    failure = why_it_waited(flow)
    turn.changes.state.stack.resume(flow, turn.context.now, reason="what it waited for is there")
    found = await end_waiting(turn, modules.ports.gather, flow, late=True)
    if found:
        turn.carry_on = True
        return
    turn.changes.climbed.add((flow.flow_id, Recovery.REROUTE.value))
    turn.carry_on = await cascade(turn, modules, Recover(Recovery.REROUTE, failure))


def _find(turn: RunningTurn) -> BaseFlow | None:
    payload = (turn.work.input.action or {}).get("payload")
    given = payload if is_object(payload) else {}
    return next((flow for flow in find_waiting(turn) if _is_meant(flow, given)), None)


def _is_meant(flow: BaseFlow, given: JsonObject) -> bool:
    return flow.flow_id == given.get("flow_id") and flow.notes["context"]["run_id"] == given.get("run_id")


def _commit_silently(turn: RunningTurn, modules: Modules, what: str) -> TurnCommit:
    after = turn.changes.state.serialize()
    raw = orjson.dumps(after)
    modules.cache.keep(turn.lease.session_id, Decoded(raw, after, turn.changes.state))
    return TurnCommit(
        status=TurnStatus.DONE,
        state=raw,
        diff=orjson.dumps(diff(turn.prior_state, after)),
        snapshot=not turn.prior_state,
        result={"seq": turn.work.seq, "epoch": turn.lease.epoch + 1, "context": what},
        events=tuple(turn.context.log.events),
    )
