"""A check that the summary or memories that a flow needs are up to date (IF-13)."""

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import Freshness, Kept, WhenStale
from orchestrator.ports.summary_refresh import SUMMARY_DUE
from orchestrator.telemetry import SignalType
from orchestrator.turns.lease import OutboxEntry

STALE = "stale"
"""The flag in a result that lists outdated summaries or memories."""
SHARE_OF_TURN = 0.5
"""Maximum share of a turn's remaining time that is spent waiting for a refresh."""


async def ensure_fresh(turn: RunningTurn, modules: Modules, flow: BaseFlow) -> None:
    """Refresh the summary or memories that the flow needs, once per turn.

    If they stay outdated, set a flag.
    """
    needed = flow.spec.freshness
    if needed is None or flow.flow_id in turn.refreshed:
        return
    turn.refreshed.add(flow.flow_id)
    age = turn.context.state.turn - 1 - await _known_through(turn, modules, needed)
    if age > needed.turns and needed.otherwise is not WhenStale.FLAG:
        age = turn.context.state.turn - 1 - await _renew(turn, modules, flow, needed)
    ok = age <= needed.turns
    turn.context.log.signal("agent", SignalType.CHECK, flow.flow_id, check="freshness", ok=ok, age=age)
    if ok:
        return
    turn.context.log.flags[STALE] = [*turn.context.log.flags.get(STALE, ()), needed.of.value]
    if needed.otherwise is WhenStale.FLAG:
        turn.context.changes.outbox.append(OutboxEntry("internal_flow", {"trigger": SUMMARY_DUE}))


async def _known_through(turn: RunningTurn, modules: Modules, needed: Freshness) -> int:
    if needed.of is Kept.SUMMARY:
        return (
            turn.context.state.history.summary.through_turn
            if turn.context.state.history.summary is not None
            else 0
        )
    if modules.ports.summary_refresh is None:
        return 0
    return await modules.ports.summary_refresh.remembered_through(
        turn.context.ids.tenant_id, turn.context.ids.session_id
    )


async def _renew(turn: RunningTurn, modules: Modules, flow: BaseFlow, needed: Freshness) -> int:
    """Refresh the summary or memories, and return the number of the last turn that they cover."""
    if modules.ports.summary_refresh is None:
        return 0
    left_s = max(0.0, turn.context.deadline - modules.ports.clock())
    renewed = await modules.ports.summary_refresh.renew(
        turn.context.ids.tenant_id,
        turn.context.ids.session_id,
        memory=needed.of is Kept.MEMORY,
        key=f"freshness:{turn.work.turn_id}:{flow.flow_id}",
        here=needed.otherwise is WhenStale.INLINE,
        wait_s=min(needed.wait_s, left_s * SHARE_OF_TURN),
    )
    if renewed is None:
        return 0
    known = turn.context.state.history.summary
    if renewed.summary is not None and (known is None or known.through_turn < renewed.through_turn):
        turn.context.state.summarize(renewed.summary, renewed.through_turn)
    return renewed.through_turn
