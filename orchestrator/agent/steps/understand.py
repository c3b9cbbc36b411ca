"""NLU's part of a turn: a text is understood, an action is read; what follows from it is the business of `dispatch`."""

from __future__ import annotations

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.json_values import is_object
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.errors import InvalidInput
from orchestrator.nlu.readers.actions import Action
from orchestrator.telemetry import SignalType
from orchestrator.types import JsonObject


async def understand(turn: RunningTurn, modules: Modules) -> None:
    """Fill `turn.understanding` and note the prediction; an action that is none leaves a remark instead."""
    context, state, given = turn.context, turn.changes.state, turn.work.input
    if given.action is not None:
        try:
            understood = modules.nlu.react(read_action(given.action), state, context)
        except InvalidInput as error:
            context.log.failed_check("nlu", "action", str(error))
            context.changes.remark(RemarkKind.BAD_ACTION)
            return
    else:
        understood = await modules.nlu.think(given.text or "", state, context, context.call)
    turn.understanding = understood
    state.predict(understood.intent, understood.flows)
    context.log.signal(
        "nlu",
        SignalType.PREDICTION,
        kind=understood.kind.value,
        source=understood.source.value,
        flows=[{"dact": flow.dact, "score": round(flow.score, 4)} for flow in understood.flows],
    )


def read_action(body: JsonObject) -> Action:
    """An action as it was submitted. Raises InvalidInput for one without a name."""
    name, payload = body.get("name"), body.get("payload")
    if not isinstance(name, str) or not name:
        raise InvalidInput("An action needs a name.", field="action.name")
    return Action(name, payload if is_object(payload) else {})
