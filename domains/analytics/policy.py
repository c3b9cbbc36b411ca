"""What all policies of the domain share: the table meant, names that people made, frames with pages.

The catalogue's names are found by NLU. Those that appear while people talk are in the session's part of the
registry (AG-3), and looked for in the message here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rapidfuzz import fuzz

from domains.analytics.catalogue import TABLES, other_names, tables_with
from domains.analytics.questions_back import (
    ask,
    names_no_table,
    offer_choices,
    own_names,
    tell_unknown_columns,
)
from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import Priority
from orchestrator.pex.execution import Ending, Execution, Failed, NeedsInput
from orchestrator.pex.policy import BasePolicy
from orchestrator.pex.steps.results import make_frame
from orchestrator.types import Json, JsonObject

AFTER: Mapping[str, tuple[str, ...]] = {
    "by": ("by", "per", "each", "over", "against", "every"),
    "across": ("across",),
    "order": ("by", "highest", "lowest"),
    "key": ("on",),
    "other_table": ("with", "and", "to"),
    "other_column": ("with", "and"),
}
"""Words before a name that say which slot it is for."""

_NEW_NAME = re.compile(
    r"\b(?:to|as|called|named|name it|call it)\s+[\"“']?([A-Za-z]\w*)[\"”']?\s*[.!?]?$", re.IGNORECASE
)
_NEW_NAME_BEFORE = re.compile(
    r"\b(?:to|as|called|named)\s+[\"“']?([A-Za-z]\w*)[\"”']?\s+(?:in|of|for|on)\b", re.IGNORECASE
)


_TURNED = re.compile(
    r"\b(?:with|having|that have|which have|who have)\s+"
    r"(?P<sign>more than|greater than|over|above|at least|less than|fewer than|under|below|at most|up to)\s+"
    r"(?P<number>\d[\d,]*(?:\.\d+)?)\s+(?P<column>[A-Za-z]\w*)",
    re.IGNORECASE,
)
"""A condition whose column comes last: “with more than 200 horsepower”."""


_QUOTED = re.compile(r"[\"“]([A-Za-z][\w ]{0,59})[\"”]")


_STRANGE = re.compile(
    r"\b(?:of|in|from|into|describe|preview|profile|export|open|display|table|about|on)\s+"
    r"(?:the\s+)?(?:table\s+)?[\"“]?([A-Za-z_]\w*)[\"”]?\s*(?:table)?\s*[.?!]?$",
    re.IGNORECASE,
)
_ORDINARY = frozenset(
    [
        "it",
        "this",
        "that",
        "them",
        "these",
        "those",
        "all",
        "total",
        "table",
        "tables",
        "data",
        "dataset",
        "rows",
        "row",
        "column",
        "columns",
        "order",
        "general",
        "detail",
        "case",
        "csv",
        "json",
        "average",
        "median",
        "mean",
        "ascending",
        "descending",
        "desc",
        "asc",
        "value",
        "values",
        "way",
        "year",
        "month",
        "day",
        "week",
        "everything",
        "parts",
        "pieces",
        "please",
        "now",
        "again",
        "first",
        "last",
        "full",
        "there",
        "here",
    ]
)
"""Words that end a sentence without being names."""


SHORT = 4
SHORTEST_REPAIRED = 6
NEARLY = 88.0
"""How like an own name, of 100, words must be to be a misspelling of it."""
_CONTINUING = frozenset({"and", "now", "as", "then"})
_OF_A_QUESTION = ("column", "by", "condition", "value", "function")


class TablePolicy(BasePolicy):
    """Fills slots with the session's own names, and hands rows over page by page."""

    async def review(self, run: Execution) -> Ending | None:
        if run.flow.plan_id is None:  # a plan's step has its values from the plan, not from the message
            fill_own_names(run)
            fill_turned_condition(run)
            continue_question(run)
            fill_new_name(run)
            fill_strange_table(run)
            settle_table(run)
            tell_unknown_columns(run)
        ending = await super().review(run)
        offer_choices(run)
        return ending

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """A table that nobody knows is asked for again, whatever else was said."""
        if names_no_table(run, failure):
            run.context.changes.remark(
                RemarkKind.FAILED,
                dact=run.flow.dact,
                category=failure.category.value,
                message=failure.message,
            )
            run.flow.clear("table")
            return ask(run, "table")
        ending = await super().recover(run, failure)
        if isinstance(ending, NeedsInput):
            offer_choices(run)
        return ending

    def outputs(self, run: Execution) -> JsonObject:
        """Besides what the tools gave, the question as it was meant, for one that continues it."""
        found = super().outputs(run)
        if "question" in self.spec.outputs:
            found["question"] = {
                name: held.value for name, held in run.flow.slots.items() if name in _OF_A_QUESTION
            }
        return found

    def frame(self, run: Execution) -> Frame:
        frame, data = make_frame(run), run.data
        frame.code = data.get("code")
        if "chart" in data:
            frame.display_type, frame.data, frame.chart_type = "chart", data["chart"], data["chart_kind"]
            frame.display_name, frame.rows, frame.warning = data["title"], None, None
        elif "rows" in data:
            frame.display_type, frame.data = "table", data["rows"]
            frame.rows, frame.table_id, frame.warning = data["row_count"], data.get("table_id"), None
        return frame


def continue_question(run: Execution) -> None:
    """Take what a short message leaves unsaid from the question before: “and the maximum”, “as a chart”."""
    done, words = run.context.changes.state.completed, run.context.text.casefold().split()
    begins = run.flow.turn_ids[:1] == [run.context.ids.turn_id]
    continues = len(words) <= SHORT or words[0] in _CONTINUING
    if not (done and begins and continues) or _said_now(run, "table") or _said_now(run, "column"):
        return
    before = done[-1].outputs.get("question")
    for name, value in (before if isinstance(before, dict) else {}).items():
        if name in run.flow.spec.slots and not _said_now(run, name):
            run.flow.fill_slots_by_label(
                {name: value}, turn_id=run.context.ids.turn_id, source=SlotSource.INHERITED
            )


def fill_own_names(run: Execution) -> None:
    """Find own names in the message and give each to the slot that its place and entity suggest."""
    text = run.context.text.casefold()
    held = _held_now(run)
    for entity, names in own_names(run).items():
        for name in sorted(names, key=len, reverse=True):
            for found in re.finditer(_spoken(name), text):
                slot = None if name in held else _slot_for(run, entity, name, text[: found.start()])
                if slot is not None:
                    _give(run, slot, name)
            text = re.sub(_spoken(name), lambda hit: " " * len(hit[0]), text)
        if entity == "table" and not _said_now(run, "table"):
            _repair_own_table(run, names, text)


def _held_now(run: Execution) -> set[Json]:
    """The values that understanding found in this message."""
    values = [run.flow.value(name) for name in run.flow.slots if _said_now(run, name)]
    return {
        one
        for value in values
        for one in (value if isinstance(value, list) else [value])
        if isinstance(one, str)
    }


def _repair_own_table(run: Execution, names: list[str], text: str) -> None:
    """Take words that are nearly an own table's name for it, and say so: “cars samle”."""
    words = list(re.finditer(r"\w+", text))
    for name in names:
        length = name.count("_") + 1
        for first in range(len(words) - length + 1):
            start, end = words[first].start(), words[first + length - 1].end()
            if _is_misspelt(text[start:end], name) and not _names_something_new(text[:start]):
                slot = _slot_for(run, "table", name, text[:start])
                if slot is not None:
                    _give(run, slot, name)
                    run.context.changes.remark(
                        RemarkKind.ASSUMED, why=f"I took “{text[start:end]}” for {name}."
                    )
                    return


def _is_misspelt(said: str, name: str) -> bool:
    folded = said.replace(" ", "_")
    is_long = len(name) >= SHORTEST_REPAIRED and folded not in TABLES
    return is_long and fuzz.ratio(folded, name.casefold()) >= NEARLY


def _names_something_new(before: str) -> bool:
    *_, word = ("", *before.split())
    return word in {"as", "called", "named", "to", "it"}


def _give(run: Execution, slot: str, name: str) -> None:
    value: Json = name
    if run.flow.spec.slots[slot].type == "group":
        held = run.flow.value(slot) if _said_now(run, slot) else None
        value = [*held, name] if isinstance(held, list) else [name]
    run.flow.fill_slots_by_label({slot: value}, turn_id=run.context.ids.turn_id)


def _spoken(name: str) -> str:
    """``cars_sample`` may be said ``cars sample``."""
    return r"(?<!\w)" + r"[ _]".join(re.escape(part) for part in name.casefold().split("_")) + r"(?!\w)"


def _slot_for(run: Execution, entity: str, own: str, before: str) -> str | None:
    """The slot an own name is for: by the word before it, else the first that is free."""
    slots = run.flow.spec.slots
    free = [name for name, slot in slots.items() if slot.entity == entity and _is_free(run, name, own)]
    *_, word = ("", *before.split())
    told = next((name for name in free if word in AFTER.get(name, ())), None)
    if told is not None:
        return told
    plain = [name for name in free if name not in AFTER or slots[name].priority is Priority.REQUIRED]
    return plain[0] if plain else None


def _is_free(run: Execution, slot: str, own: str) -> bool:
    """Whether an own name may go there: the user said nothing for it, or only a part of that name."""
    if run.flow.spec.slots[slot].type == "group" or not _said_now(run, slot):
        return True
    value = str(run.flow.value(slot)).casefold()
    return value != own and (value in own or own in other_names(value))


def _said_now(run: Execution, name: str) -> bool:
    """Whether the user gave a slot its value in this turn."""
    held = run.flow.slots.get(name)
    return held is not None and held.source is SlotSource.USER and held.turn_id == run.context.ids.turn_id


def fill_new_name(run: Execution) -> None:
    """Take the new name from “to power”, “as power”, “called power”."""
    if "new_name" not in run.flow.spec.slots or run.flow.holds("new_name"):
        return
    found = _NEW_NAME.search(run.context.text) or _NEW_NAME_BEFORE.search(run.context.text)
    if found is not None and found[1].casefold() not in {str(run.value(name)) for name in run.flow.slots}:
        run.flow.fill_slots_by_label({"new_name": found[1]}, turn_id=run.context.ids.turn_id)


def fill_turned_condition(run: Execution) -> None:
    """Take a condition from “with more than 200 horsepower”, in the order that conditions are read in."""
    if "condition" not in run.flow.spec.slots or _said_now(run, "condition"):
        return
    found = _TURNED.search(run.context.text)
    if found is None:
        return
    sign = found["sign"].casefold().replace("fewer", "less")
    condition = f"where {found['column']} {sign} {found['number']}"
    run.flow.fill_slots_by_label({"condition": condition}, turn_id=run.context.ids.turn_id)


def fill_category(run: Execution, slot: str) -> None:
    """Take a category from its words wherever they stand, when understanding left it at its default."""
    if _said_now(run, slot) or run.flow.plan_id is not None:
        return
    spec = run.flow.spec.slots[slot]
    words = {**{value: value for value in spec.values}, **spec.synonyms}
    said = f" {' '.join(re.findall(r'[a-z]+', run.context.text.casefold()))} "
    found = [word for word in words if f" {word} " in said]
    if found:
        best = max(found, key=len)
        run.flow.fill_slots_by_label({slot: words[best]}, turn_id=run.context.ids.turn_id)


def fill_quoted(run: Execution, slot: str) -> None:
    """Take quoted names that no other value contains: columns that may not exist yet."""
    taken = [str(run.flow.value(name)) for name in run.flow.slots if name != slot]
    quoted = [name for name in _QUOTED.findall(run.context.text) if not any(name in one for one in taken)]
    held = run.flow.value(slot) if _said_now(run, slot) else None
    known = [str(one) for one in held] if isinstance(held, list) else []
    new = [name for name in quoted if name not in known]
    if new:
        run.flow.fill_slots_by_label({slot: [*known, *new]}, turn_id=run.context.ids.turn_id)


def fill_strange_table(run: Execution) -> None:
    """Take a table's name that nobody knows for one, so that the last table is not shown in its stead."""
    held = run.flow.slots.get("table")
    if "table" not in run.flow.spec.slots or _said_now(run, "table") or (held and _asked_before(run)):
        return
    found = _STRANGE.search(run.context.text)
    if found is None or found[1].casefold() in _ORDINARY:
        return
    known = " ".join(str(run.flow.value(name)) for name in run.flow.slots if name != "table").casefold()
    named = {name for table in TABLES.values() for one in table.columns for name in (one.name, *one.aliases)}
    words = {*known.split(), *named, *(word for names in own_names(run).values() for word in names)}
    said = " ".join(slot.text for slot in run.flow.slots.values()).casefold()
    if found[1].casefold() not in words and found[1].casefold() not in said:
        run.flow.fill_slots_by_label({"table": found[1]}, turn_id=run.context.ids.turn_id)


def _asked_before(run: Execution) -> bool:
    """Whether this turn only answers a question of the flow."""
    return run.flow.turn_ids[:1] != [run.context.ids.turn_id]


def settle_table(run: Execution) -> None:
    """Choose the table by the columns and groups named, when none is said or the last one does not fit.

    Only the catalogue's names are judged; a table that the user has changed may have others.
    """
    if "table" not in run.flow.spec.slots:
        return
    held = run.flow.slots.get("table")
    if held is not None and held.source is not SlotSource.INHERITED:
        return
    own = own_names(run)
    said = [name for name in _names_said(run) if name not in own.get("column", [])]
    if not said or (held is not None and held.value not in TABLES):
        return
    fitting = tables_with(said)
    if held is not None and (held.value in fitting or not fitting):
        return
    run.flow.clear("table")
    if len(fitting) == 1:
        run.flow.fill_slots_by_label(
            {"table": fitting[0]}, turn_id=run.context.ids.turn_id, source=SlotSource.INHERITED
        )


def _names_said(run: Execution) -> list[str]:
    """Columns and groups that the flow's slots hold."""
    names: list[str] = []
    for name, slot in run.flow.spec.slots.items():
        if slot.entity in {"column", "group"} and run.flow.holds(name):
            value = run.flow.value(name)
            names += [str(one) for one in value] if isinstance(value, list) else [str(value)]
    return names
