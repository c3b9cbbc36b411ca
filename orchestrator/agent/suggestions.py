"""Which repairs fit a session. What only a person knows is left empty."""

from collections.abc import Iterator

from orchestrator.agent.repairs import Place, load_state, make_repairs
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL
from orchestrator.dialogue.state import DialogueState
from orchestrator.turns.approval import PERSON
from orchestrator.turns.effect import OPEN
from orchestrator.turns.repair import Mend
from orchestrator.types import Json, JsonObject


def suggest(place: Place) -> list[JsonObject]:
    """List repairs that fit, each as ``{repair, why}``: of the state, of the ledger, of each flow, top first."""
    state = load_state(place, place.before)
    mending = make_repairs(place, [Mend(kind="mend")])
    fits = [_offer(" ".join(mending.done), kind="mend")] if mending.done else []
    for entry in place.ledger.values():
        if entry.status in OPEN:
            why, named = f"Nobody knows whether {entry.tool_id} was done.", entry.fingerprint
            fits.append(_offer(why, kind="mark", fingerprint=named, done=True, result={}))
            fits.append(_offer(why, kind="mark", fingerprint=named, done=False))
    for flow in reversed(state.stack.live()):
        fits += _fit_flow(flow, at_work=flow is state.stack.active)
    return [*fits, *_fit_person(state)]


def _offer(why: str, **repair: Json) -> JsonObject:
    return {"repair": repair, "why": why}


def _fit_flow(flow: BaseFlow, *, at_work: bool) -> Iterator[JsonObject]:
    stands = f"{flow.dact} is {flow.status}."
    if flow.status != AWAITING_APPROVAL:
        for slot in flow.missing():
            yield _offer(f"{flow.dact} needs it.", kind="fill", flow=flow.flow_id, slot=slot.name, value=None)
        if not at_work:
            yield _offer(stands, kind="resume", flow=flow.flow_id)
    yield _offer(stands, kind="drop", flow=flow.flow_id)


def _fit_person(state: DialogueState) -> Iterator[JsonObject]:
    if state.person is not None:
        yield _offer(f"{state.person} answers the user.", kind="say", text="")
        yield _offer(f"{state.person} answers the user.", kind="hand_back")
    elif any(approval.tool_id == PERSON for approval in state.approvals):
        yield _offer("The user is waiting for a person.", kind="take_over")
