from orchestrator.agent.context_wait import resume_waiting
from orchestrator.agent.modules import Modules
from orchestrator.agent.open_question import is_asked_by_skill
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.domain.model import Domain
from orchestrator.errors import InvalidInput, Unavailable
from orchestrator.memory.quoting import ABOUT
from orchestrator.memory.tokenizer import share_of
from orchestrator.nlu.actions import Action
from orchestrator.pex.documents import QUESTION
from orchestrator.pex.skills.components import search_documents
from orchestrator.telemetry import SignalType
from orchestrator.turns.scheduled import EVENT
from orchestrator.turns.turn import TurnKind
from orchestrator.types import Dact, JsonObject, is_object


async def understand(turn: RunningTurn, modules: Modules) -> None:
    """Interpret the turn's text or action, and log the prediction. Answer an invalid action with a message."""
    context, state, given = turn.context, turn.context.state, turn.work.input
    if modules.ports.gather is not None:
        await resume_waiting(turn.context, modules.ports.gather)
    if given.action is not None:
        try:
            action = find_started_flow(read_action(given.action), given.kind, modules.domain)
            understood = modules.nlu.react(action, state, context)
        except InvalidInput as error:
            context.log.failed_check("nlu", "action", str(error))
            context.tell(NoticeKind.BAD_ACTION)
            return
    else:
        understood = await modules.nlu.think(given.text or "", state, context, context.call)
        if modules.answering is not None and _is_left_open(understood):
            understood = await _look_up(turn, understood, modules.answering)
    turn.context.changes.understanding = understood
    state.predict(understood.intent, understood.flows)
    context.log.signal(
        "nlu",
        SignalType.PREDICTION,
        kind=understood.kind.value,
        source=understood.source.value,
        flows=[{"dact": flow.dact, "score": round(flow.score, 4)} for flow in understood.flows],
        not_understood=list(understood.not_understood),
    )


def _is_left_open(understood: Understanding) -> bool:
    """Return whether a message was not understood or is a side question."""
    if understood.kind is MessageKind.DIGRESSION:
        return understood.digression in {None, Digression.QUESTION}
    return understood.kind is MessageKind.UNKNOWN and understood.rejection is None


async def _look_up(turn: RunningTurn, understood: Understanding, answering: Dact) -> Understanding:
    """Return `understood`, or the task `answering` if a document matches better than the domain's answers.

    `answering`: name of the flow that answers from documents.
    """
    if is_asked_by_skill(turn.context):
        return understood
    try:
        found = await search_documents(turn.context, understood.text)
    except Unavailable as error:
        turn.context.log.failed_check("nlu", "documents", str(error))
        return understood
    share = max((share_of(understood.text, f"{one.title} {one.text}") for one in found), default=0.0)
    if share < ABOUT or share <= _share_of_answer(turn, understood):
        return understood
    spec = turn.context.world.domain.flows[answering].spec
    return Understanding(
        kind=MessageKind.TASK,
        source=Source.DOCUMENTS,
        text=understood.text,
        intent=spec.intent,
        flows=(FlowScore(answering, found[0].score),),
        slots={QUESTION: Mention(understood.text, understood.text)},
    )


def _share_of_answer(turn: RunningTurn, understood: Understanding) -> float:
    answers = turn.context.world.domain.answers
    declared = next((one for one in answers if one.name == understood.target), None)
    return (
        0.0 if declared is None else share_of(understood.text, " ".join((*declared.examples, declared.text)))
    )


def read_action(body: JsonObject) -> Action:
    """Parse a submitted action. Raises InvalidInput if the action has no name."""
    name, payload = body.get("name"), body.get("payload")
    if not isinstance(name, str) or not name:
        raise InvalidInput("An action needs a name.", field="action.name")
    return Action(name, payload if is_object(payload) else {})


def find_started_flow(action: Action, kind: TurnKind, domain: Domain) -> Action:
    """Return the action that starts an event's flow, or `action` itself if it is not an event.

    Raises InvalidInput if the domain has no flow for the event.
    """
    if kind is not TurnKind.SYSTEM or action.name != EVENT:
        return action
    name, payload = action.payload.get("name"), action.payload.get("payload")
    if not isinstance(name, str) or name not in domain.events:
        raise InvalidInput("The domain has no flow for this event.", field="name")
    slots = payload if is_object(payload) else {}
    return Action("start_flow", {"dact": domain.events[name], "slots": slots})
