"""NLU's part of a turn: a text is understood, an action is read; what follows from it is the uptake's business."""

from __future__ import annotations

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.telemetry import SignalType


async def understand(turn: RunningTurn, modules: Modules) -> None:
    """Fill `turn.understanding`; note the prediction in the state."""
    world, state, given = turn.world, turn.state, turn.work.input
    if given.action is not None:
        understood = modules.nlu.react(given.action, state)
    else:
        understood = await modules.nlu.think(given.text or "", state, world)
    turn.understanding = understood
    state.predicted_intent = understood.intent
    state.predicted_flow = understood.flows[0].dact if understood.flows else None
    state.candidates = list(understood.flows)
    if understood.degraded:
        world.flags["degraded"] = True
    world.signal(
        "nlu",
        SignalType.PREDICTION,
        kind=understood.kind.value,
        source=understood.source.value,
        flows=[{"dact": flow.dact, "score": round(flow.score, 4)} for flow in understood.flows],
    )
