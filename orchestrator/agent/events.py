"""Turns that an outside event or a reminder causes: the flow that lists the event starts (RT-31)."""

from orchestrator.domain.model import Domain
from orchestrator.errors import InvalidInput
from orchestrator.nlu.actions import Action
from orchestrator.turns.scheduled import EVENT
from orchestrator.turns.turn import TurnKind
from orchestrator.types import is_object


def find_started_flow(action: Action, kind: TurnKind, domain: Domain) -> Action:
    """Return the action that starts an event's flow; other actions are returned unchanged.

    Raises InvalidInput for an event that starts no flow.
    """
    if kind is not TurnKind.SYSTEM or action.name != EVENT:
        return action
    name, payload = action.payload.get("name"), action.payload.get("payload")
    if not isinstance(name, str) or name not in domain.events:
        raise InvalidInput("The domain has no such event.", field="name")
    slots = payload if is_object(payload) else {}
    return Action("start_flow", {"dact": domain.events[name], "slots": slots})
