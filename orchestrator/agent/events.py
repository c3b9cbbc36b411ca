"""Turns for external events and reminders. Each turn starts the flow that handles its event (RT-31)."""

from orchestrator.domain.model import Domain
from orchestrator.errors import InvalidInput
from orchestrator.nlu.actions import Action
from orchestrator.turns.scheduled import EVENT
from orchestrator.turns.turn import TurnKind
from orchestrator.types import is_object


def find_started_flow(action: Action, kind: TurnKind, domain: Domain) -> Action:
    """Return the action that starts an event's flow, or `action` itself if it is not an event.

    Raises InvalidInput if the domain has no flow for the event.
    """
    if kind is not TurnKind.SYSTEM or action.name != EVENT:
        return action
    name, payload = action.payload.get("name"), action.payload.get("payload")
    if not isinstance(name, str) or name not in domain.events:
        raise InvalidInput("The domain has no such event.", field="name")
    slots = payload if is_object(payload) else {}
    return Action("start_flow", {"dact": domain.events[name], "slots": slots})
