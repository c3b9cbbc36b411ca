"""Failure, tier 2: no usable result came out of PEX (AG-6). Re-route, skip within a plan, or ask the user."""

from __future__ import annotations

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import FAILED
from orchestrator.errors import FailureCategory
from orchestrator.pex.ending import Failed, Recover, Recovery
from orchestrator.telemetry import SignalType
from orchestrator.types import Dact
from orchestrator.world.remark import RemarkKind


async def cascade(turn: RunningTurn, modules: Modules, ending: Failed | Recover) -> bool:
    """Act on a failure; True when another flow is on top and is to be carried out now."""
    flow = turn.state.stack.active
    failure = ending.failure if isinstance(ending, Recover) else ending
    if flow is None:
        _tell(turn, failure, None)
        return False
    if isinstance(ending, Recover) and await _reroute(turn, modules, flow, ending):
        return True
    if _skip(turn, flow):
        _signal(turn, flow, "skip")
        return False
    _signal(turn, flow, "escalate")
    _tell(turn, failure, flow)
    if failure.category in WORTH_ANOTHER_TRY and failure.check is None:
        _offer_another_try(turn, flow)
    else:
        turn.state.stack.invalidate(flow, FAILED)
    return False


WORTH_ANOTHER_TRY = frozenset(
    {FailureCategory.SERVER_ERROR, FailureCategory.TIMEOUT, FailureCategory.RATE_LIMIT}
)


async def _reroute(turn: RunningTurn, modules: Modules, flow: BaseFlow, ending: Recover) -> bool:
    """Fall back to the flow that the policy knows, or that NLU finds; bounded per turn."""
    if turn.reroutes >= turn.world.domain.config.resilience.max_recovery_attempts:
        return False
    target = ending.target
    if ending.recovery is Recovery.REROUTE:
        target = await _contemplate(turn, modules, flow, ending.failure)
    if ending.recovery is Recovery.ESCALATE or target is None or target == flow.dact:
        return False
    turn.reroutes += 1
    _signal(turn, flow, "reroute", target=target)
    turn.world.remark(
        RemarkKind.FAILED, message=ending.failure.message, category=ending.failure.category.value
    )
    fresh = turn.state.stack.fall_back(turn.world.domain.flows[target], turn.world.now)
    turn.state.inherit(fresh)
    turn.state.flags.natural_birth = False
    turn.world.event("flow_pushed", dact=fresh.dact, flow_id=fresh.flow_id)
    return True


async def _contemplate(turn: RunningTurn, modules: Modules, flow: BaseFlow, failure: Failed) -> Dact | None:
    understood = await modules.nlu.contemplate(
        turn.state,
        turn.world,
        (flow.dact,),
        evidence={"category": failure.category.value, "message": failure.message},
        text=turn.work.input.text or "",
        call=turn.world.call,
    )
    known = (score.dact for score in understood.flows if score.dact in turn.world.domain.flows)
    return next(known, None)


def _skip(turn: RunningTurn, flow: BaseFlow) -> bool:
    """Inside a plan a failed step is left out and the next one comes."""
    if flow.plan_id is None or turn.state.stack.plan_of(flow) is None:
        return False
    turn.state.stack.invalidate(flow, FAILED)
    return True


def _tell(turn: RunningTurn, failure: Failed, flow: BaseFlow | None) -> None:
    turn.state.flags.has_issues = True
    turn.world.remark(
        RemarkKind.FAILED,
        message=failure.message,
        category=failure.category.value,
        flow_id=flow.flow_id if flow is not None else None,
    )


def _offer_another_try(turn: RunningTurn, flow: BaseFlow) -> None:
    turn.state.ambiguity.declare(
        Level.CONFIRMATION, flow_id=flow.flow_id, turn_id=turn.work.turn_id, metadata={"about": "retry"}
    )


def _signal(turn: RunningTurn, flow: BaseFlow, rung: str, **more: str) -> None:
    turn.world.signal("agent", SignalType.RECOVERY, flow.flow_id, rung=rung, dact=flow.dact, **more)
