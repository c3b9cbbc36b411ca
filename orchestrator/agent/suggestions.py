"""Suggested repairs for a session."""

from collections.abc import Iterator

from orchestrator.agent.repairs import Place, load_state
from orchestrator.agent.takeover import waits_for_person
from orchestrator.dialogue.state import DialogueState
from orchestrator.turns.effect import OPEN
from orchestrator.types import Json, JsonObject


def suggest(place: Place) -> list[JsonObject]:
    """List suggested repairs as ``{repair, why}``: for the ledger, flows from the top down, and operators."""
    state = load_state(place, place.before)
    fits: list[JsonObject] = []
    for entry in place.ledger.values():
        if entry.status in OPEN:
            why, named = f"The outcome of {entry.tool_id} is unknown.", entry.fingerprint
            fits.append(_offer(why, kind="mark", fingerprint=named, done=True, result={}))
            fits.append(_offer(why, kind="mark", fingerprint=named, done=False))
    drops = [
        _offer(f"{flow.dact} is {flow.status}.", kind="drop", flow=flow.flow_id)
        for flow in reversed(state.stack.live())
    ]
    return [*fits, *drops, *_fit_person(state)]


def _offer(why: str, **repair: Json) -> JsonObject:
    return {"repair": repair, "why": why}


def _fit_person(state: DialogueState) -> Iterator[JsonObject]:
    if state.person is not None:
        yield _offer(f"{state.person} answers the user.", kind="say", text="")
        yield _offer(f"{state.person} answers the user.", kind="hand_back")
    elif waits_for_person(state):
        yield _offer("The user is waiting for a person.", kind="take_over")
