"""Answer questions about displayed rows, and handle the choice of a row (IR-5)."""

from __future__ import annotations

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import NextTask, Option
from orchestrator.dialogue.records import PRICE_WORDS, Shown
from orchestrator.dialogue.understanding import Cue, Understanding
from orchestrator.res.wording import name_slot, name_task, show_money, show_truth
from orchestrator.types import Json, JsonObject


def follow_row(context: TurnContext, flow: BaseFlow) -> None:
    """Set the current row to the displayed row that the flow uses, if any."""
    listed = context.state.shown
    value = None if listed is None else flow.value(listed.key)
    if listed is not None and value is not None:
        place = next((at for at, row in enumerate(listed.rows) if row.get(listed.key) == value), listed.place)
        context.state.talk_about(place)


def talk_about_rows(context: TurnContext, understood: Understanding) -> bool:
    """Show the next row, or requested fields. Return False if the message requests neither."""
    listed = context.state.find_current_rows()
    if listed is None or Cue.OTHER_ROW not in understood.cues:
        return show_requested_fields(context, understood)
    if listed.place + 1 == len(listed.rows):
        context.tell(NoticeKind.NO_MORE_ROWS, count=len(listed.rows))
        return True
    context.state.talk_about(listed.place + 1)
    row = listed.rows[listed.place + 1]
    context.tell(NoticeKind.ROW, row=_name(listed, row), fields=_tell(row, without=listed.key))
    return True


def show_requested_fields(context: TurnContext, understood: Understanding) -> bool:
    """Show requested fields of the current row, or of all rows.

    Return False if the current row has no requested field.
    """
    listed, row = context.state.find_current_rows(), context.state.find_current_row()
    asked = [name for name in understood.rows.fields if row.get(name) is not None]
    currency = str(row.get("currency", ""))
    if asked and listed is not None and understood.rows.each:
        fields = [
            {
                "name": _name(listed, row),
                "value": ", ".join(
                    f"{field['name']} {field['value']}"
                    for field in _tell({name: row.get(name) for name in asked}, currency=currency)
                ),
            }
            for row in listed.rows
        ]
        context.tell(NoticeKind.ROW_FIELDS, row="", fields=fields, each=True)
    elif asked:
        fields = _tell({name: row[name] for name in asked}, currency=currency)
        name = "" if listed is None else _name(listed, row)
        context.tell(NoticeKind.ROW_FIELDS, row=name, fields=fields, each=False)
    return bool(asked)


def choose_row(context: TurnContext, understood: Understanding) -> bool:
    """Choose the row that a message names, or the current row, and offer the next task.

    Return False unless rows are displayed and exactly one task can follow.
    """
    state, flows = context.state, context.world.domain.flows
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
    place = listed.place if understood.rows.named is None else understood.rows.named
    state.talk_about(place)
    context.tell(NoticeKind.ROW_CHOSEN, row=_name(listed, listed.rows[place]))
    option = Option(name_task(flows[next_ones[0]]), "start_flow", {"dact": next_ones[0]})
    state.ambiguity.declare(NextTask(options=(option,)))
    context.changes.carry_on = False
    return True


def _name(listed: Shown, row: JsonObject) -> str:
    return listed.name(row.get(listed.key)) or ""


def _tell(row: JsonObject, *, without: str = "", currency: str = "") -> list[JsonObject]:
    """List fields for display. In the result, `counts` is True if the field's name is a unit, as in “205 minutes”."""
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
        return show_truth(value)
    return show_money(value, currency) if currency and not PRICE_WORDS.isdisjoint(name.split("_")) else value
