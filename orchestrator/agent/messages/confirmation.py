"""Take a yes: what it means depends on the open question."""

from orchestrator.agent.messages.correction import PROPOSED, changed_slots, correct_flow, decide
from orchestrator.agent.messages.displayed_rows import choose_row, tell_asked_fields
from orchestrator.agent.messages.task import start_task
from orchestrator.agent.open_question import answer_open, is_plain, leave_open, nothing_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import fill
from orchestrator.dialogue.ambiguity import Ambiguity, Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.pex.calls.consent import confirm_candidate
from orchestrator.types import Dact


def confirm(turn: RunningTurn, understood: Understanding) -> None:
    """Take a yes; one that adds or changes a value is no yes to what was asked (PX-18)."""
    if not understood.slots and answer_open(turn):
        return
    entry = turn.changes.state.ambiguity.current
    flow = turn.changes.state.stack.active
    if entry is not None and entry.was_put_after(turn.accepted_at):
        leave_open(turn)
    elif entry is None:
        if not choose_row(turn, understood.text):
            nothing_open(turn)
    elif PROPOSED in entry.metadata and is_plain(turn, understood):
        decide(turn, entry.metadata[PROPOSED])
    elif flow is not None and understood.slots and entry.level is Level.SPECIFIC:
        fill(turn, flow, understood.slots)
    elif flow is not None and changed_slots(flow, understood.slots):
        correct_flow(turn, flow, understood.slots)  # "yes, but in business class"
    elif entry.level is Level.CONFIRMATION and not is_plain(turn, understood):
        turn.changes.remark(RemarkKind.NOT_UNDERSTOOD)
        turn.carry_on = False
    elif flow is None or entry.flow_id != flow.flow_id or not _take_yes(turn, flow, entry):
        _take_only_option(turn, flow, entry)
    tell_asked_fields(turn, understood.text)  # "Yes, please. What is the address?"


def _take_yes(turn: RunningTurn, flow: BaseFlow, entry: Ambiguity) -> bool:
    """Act on a yes to a question of the flow at work; False when it is none that a yes answers."""
    state, about = turn.changes.state, entry.metadata.get("about")
    if about == "value" and entry.slot is not None and len(entry.candidates) == 1:
        fill(turn, flow, {entry.slot: entry.candidates[0]})
        flow.confirm(entry.slot)
    elif entry.level is Level.CONFIRMATION:
        if confirm_candidate(state, flow):
            flow.confirm()
    elif about != "change":  # "Sorry, yes, book it": it is displayed and asked about once more
        return False
    state.ambiguity.resolve(entry)
    turn.carry_on = True
    return True


def _take_only_option(turn: RunningTurn, flow: BaseFlow | None, entry: Ambiguity) -> None:
    """Take the one thing that was offered; of several, a yes names none."""
    match entry.options:
        case [Option(action_name="start_flow", payload={"dact": str(dact)})]:
            turn.changes.state.ambiguity.resolve(entry)
            start_task(turn, Dact(dact), {})
        case [Option(action_name="fill_slot", payload={"slot": str(slot), "value": value})] if (
            flow is not None
        ):
            turn.changes.state.ambiguity.resolve(entry)
            fill(turn, flow, {slot: value})
        case _:
            turn.changes.remark(RemarkKind.NOT_UNDERSTOOD)
            turn.carry_on = False
