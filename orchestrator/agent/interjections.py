"""Classify mid-turn messages with the local classifier (RT-5)."""

from dataclasses import replace

from orchestrator.agent.messages.cancellation import find_meant
from orchestrator.agent.messages.correction import find_corrected
from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.steps.understand import read_action
from orchestrator.context import TurnLog
from orchestrator.dialogue.understanding import Cue, Digression, MessageKind, Understanding
from orchestrator.errors import InvalidInput
from orchestrator.runtime.journal import Meaning
from orchestrator.telemetry import drop_signal
from orchestrator.turns.lease import Work
from orchestrator.turns.turn import TurnKind


async def weigh(turn: RunningTurn, modules: Modules, said: Work) -> Meaning:
    """Return what a mid-turn message means for the running turn, without changing the turn."""
    state, given = turn.context.state, said.input
    context = replace(turn.context, text=given.text or "", log=TurnLog(turn.context.ids, drop_signal))
    try:
        if given.action is not None:
            understood = modules.nlu.react(read_action(given.action), state, context)
        else:
            understood = await modules.nlu.think(context.text, state, context, only_sure=True)
    except InvalidInput:
        return Meaning.WAITS
    match understood.kind:
        case _ if understood.rejection is not None:
            return Meaning.WAITS
        case MessageKind.DIGRESSION if understood.digression is not Digression.PERSON:
            return Meaning.NOTHING
        case MessageKind.CHITCHAT:
            return Meaning.NOTHING
        case MessageKind.DENIAL if _was_agreed_to(turn):
            return Meaning.TAKES_BACK
        case MessageKind.CORRECTION if Cue.ADDS in understood.cues:
            return Meaning.WAITS
        case _ if _concerns(turn, understood):
            return Meaning.STOPS
        case _:
            return Meaning.WAITS


def _was_agreed_to(turn: RunningTurn) -> bool:
    understood = turn.context.changes.understanding
    return understood is not None and understood.kind is MessageKind.CONFIRMATION


def _concerns(turn: RunningTurn, understood: Understanding) -> bool:
    """Return whether a message changes or cancels the turn's task.

    Until NLU has interpreted a user turn's own message, return True only for a cancellation while no task is
    open.
    """
    state = turn.context.state
    if turn.context.changes.understanding is None and turn.work.input.kind is TurnKind.USER:
        return understood.kind is MessageKind.CANCELLATION and not state.stack.live()
    active = state.stack.active
    if active is None or not (turn.context.changes.carry_on or turn.context.changes.understanding is None):
        return False
    task = {active.flow_id, state.stack.root(active).flow_id}
    match understood.kind:
        case MessageKind.CANCELLATION:
            return find_meant(turn.context, understood.target).flow_id in task
        case MessageKind.CORRECTION:
            flow = find_corrected(turn.context, understood)
            return flow is not None and flow.flow_id in task
        case MessageKind.DENIAL:
            return state.ambiguity.current is None
        case MessageKind.SLOT_VALUE | MessageKind.PLAN_CHANGE:
            return True
        case _:
            return False
