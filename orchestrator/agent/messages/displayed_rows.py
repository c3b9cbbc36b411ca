"""Answer questions about displayed rows, and treat approval of a row as choosing it (IR-5)."""

from __future__ import annotations

from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.consent import read_candidate
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.questions import NextTask, Option
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.nlu.nlu_context import find_known_rows
from orchestrator.nlu.row_questions import (
    PRICES,
    asks_about_all,
    asks_for_another,
    find_asked_fields,
    may_mean_all,
)
from orchestrator.nlu.text import key_of, tokenize, word_set
from orchestrator.res.wording import name_slot, name_task, show_money
from orchestrator.types import Json, JsonObject

_OF_WHOLE = word_set("altogether together total both trip")


def follow_row(turn: RunningTurn, flow: BaseFlow) -> None:
    """Select the row that the running task uses as the current row."""
    listed = turn.changes.state.shown
    value = None if listed is None else flow.value(listed.key)
    if listed is not None and value is not None:
        place = next((at for at, row in enumerate(listed.rows) if row.get(listed.key) == value), listed.place)
        turn.changes.state.talk_about(place)


def talk_about_rows(turn: RunningTurn, text: str) -> bool:
    """Go on to the next row, or tell fields of the one that is talked about; False when neither is asked for."""
    listed = _find_known_rows(turn)
    if listed is None or not asks_for_another(text):
        return show_requested_fields(turn, text)
    if listed.place + 1 == len(listed.rows):
        turn.changes.remark(RemarkKind.NO_MORE_ROWS, count=len(listed.rows))
        return True
    turn.changes.state.talk_about(listed.place + 1)
    row = listed.rows[listed.place + 1]
    turn.changes.remark(RemarkKind.ROW, row=_name(listed, row), fields=_tell(row, without=listed.key))
    return True


def show_requested_fields(turn: RunningTurn, text: str) -> bool:
    """Show requested fields of the current row, or of all rows. Returns False if none is requested."""
    listed, offered = _find_known_rows(turn), _find_offered(turn)
    current = offered if listed is None else listed.current
    if listed is not None and current.get(listed.key) == offered.get(listed.key):
        current = current | offered
    row = {name: value for name, value in current.items() if value is not None}
    flow = turn.changes.state.stack.active or turn.changes.state.find_completed()
    nouns = (
        ()
        if flow is None
        else {one for word in flow.dact.split("_") for one in (word, word.removesuffix("s"))}
    )
    asked = [] if _is_about_other_step(turn, text) else find_asked_fields(text, row, nouns)
    if asked and listed is not None and _is_about_all(turn, listed, text):
        fields = [
            {
                "name": _name(listed, row),
                "value": ", ".join(f"{name_slot(name)} {row.get(name)}" for name in asked),
            }
            for row in listed.rows
        ]
        turn.changes.remark(RemarkKind.ROW_FIELDS, row="", fields=fields, each=True)
    elif asked:
        fields = _tell({name: row[name] for name in asked}, currency=str(row.get("currency", "")))
        name = "" if listed is None else _name(listed, row)
        turn.changes.remark(RemarkKind.ROW_FIELDS, row=name, fields=fields, each=False)
    return bool(asked)


def _is_about_other_step(turn: RunningTurn, text: str) -> bool:
    """Return whether words name the plan or a step that isn't running: "the return fares"."""
    stack = turn.changes.state.stack
    plan = None if stack.active is None else stack.plan_of(stack.active)
    if plan is None or stack.active is None:
        return False
    at_work = plan.step_of(stack.active.flow_id)
    others = {word for step in plan.steps if step is not at_work for word in step.label.casefold().split()}
    own = frozenset[str]() if at_work is None else word_set(at_work.label.casefold())
    return not (others - own | _OF_WHOLE).isdisjoint(tokenize(text).words)


def _is_about_all(turn: RunningTurn, listed: Shown, text: str) -> bool:
    """Return whether a question is about all rows: "they" means all until the user talks about one."""
    flow = turn.changes.state.stack.active
    is_open = not listed.place and (flow is None or flow.value(listed.key) is None)
    return len(listed.rows) > 1 and (asks_about_all(text) or (is_open and may_mean_all(text)))


def _find_offered(turn: RunningTurn) -> JsonObject:
    """Return the data of a pending call's offer: "when does it land?" is about them."""
    state = turn.changes.state
    candidate = None if state.stack.active is None else read_candidate(state, state.stack.active)
    data = {} if candidate is None else candidate.data
    return {name: value for name, value in data.items() if isinstance(value, str | int | float)}


def _find_known_rows(turn: RunningTurn) -> Shown | None:
    """Find the rows displayed last, if the running or last task is about them."""
    state = turn.changes.state
    flow = state.stack.active or state.find_completed()
    listed = find_known_rows(state, flow)
    if listed is None or flow is None or not listed.rows:
        return None
    return listed if flow.dact == listed.dact or flow.slot(listed.key) is not None else None


def choose_row(turn: RunningTurn, text: str) -> bool:
    """Treat agreement without a question as choosing a row, and offer what can come next.

    This is the only row that the words name ("I prefer the Old Mill"), or the current one.
    """
    state, flows = turn.changes.state, turn.context.world.domain.flows
    listed = state.shown
    last = state.find_completed()
    if listed is None or not listed.rows or last is None or last.dact != listed.dact:
        return False
    next_ones = [
        dact
        for dact, flow in flows.items()
        if dact != listed.dact and listed.key in {*flow.spec.slots, *flow.spec.inputs} and flow.spec.confirm
    ]
    if len(next_ones) != 1:
        return False
    said = f" {key_of(text)} "
    named = {at for at, row in enumerate(listed.rows) if f" {key_of(str(row.get(listed.key)))} " in said}
    place = named.pop() if len(named) == 1 else listed.place
    state.talk_about(place)
    turn.changes.remark(RemarkKind.ROW_CHOSEN, row=_name(listed, listed.rows[place]))
    option = Option(name_task(flows[next_ones[0]]), "start_flow", {"dact": next_ones[0]})
    state.ambiguity.declare(NextTask(options=(option,)), turn.work.turn_id)
    turn.carry_on = False
    return True


def _name(listed: Shown, row: JsonObject) -> str:
    return listed.name(row.get(listed.key)) or ""


def _tell(row: JsonObject, *, without: str = "", currency: str = "") -> list[JsonObject]:
    """List fields; `counts`: the name is what the value counts, as in “205 minutes”."""
    return [
        {
            "name": name_slot(name),
            "value": _show(name, value, currency),
            "counts": name.endswith("s") and isinstance(value, int | float) and not isinstance(value, bool),
        }
        for name, value in row.items()
        if name != without and value is not None
    ]


def _show(name: str, value: Json, currency: str) -> Json:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return show_money(value, currency) if currency and not PRICES.isdisjoint(name.split("_")) else value
