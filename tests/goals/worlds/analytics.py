"""People who work on tables: ask for figures, and change tables after a yes where something would be lost.

Knows the tables from their files, not from the domain's engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from orchestrator import Records
from tests.goals.goal import Agreement, Deed, Effect, Seen, Store, Values, Wish
from tests.goals.grammar import Grammar
from tests.goals.worlds.tables import columns_of, count_where, figure, has_no_duplicates, rows_of

DROPPABLE = {
    "cars": ("weight", "acceleration", "displacement", "cylinders"),
    "iris": ("petal_width", "sepal_length", "petal_length"),
    "weather": ("wind", "precipitation"),
    "barley": ("variety", "site"),
}
CONDITIONS = {
    "cars": (
        "where origin is Japan",
        "where horsepower is over 150",
        "where origin is USA",
        "where weight is under 2500",
    ),
    "iris": ("where species is setosa", "where petal_length is over 5"),
    "weather": ("where wind is over 5", "where precipitation is over 10"),
    "barley": ("where yield is over 40", "where year is 1931"),
}
NUMERIC = {
    "cars": ("mpg", "horsepower", "weight", "acceleration"),
    "iris": ("petal_length", "sepal_width"),
    "weather": ("wind", "precipitation", "temp_max"),
    "barley": ("yield",),
}
NEW_NAMES = ("power", "value_now", "measure", "reading")
FUNCTIONS = {"average": "avg", "highest": "max", "lowest": "min"}
DACTS = {"drop_column": "drop_column", "deduplicate": "deduplicate", "filter": "filter", "delete_rows": "delete_rows",
         "rename": "rename_column", "sort": "sort", "ask": "aggregate", "count": "aggregate",
         "undo": "undo_last_step"}  # fmt: skip
ASKS_FIRST = frozenset({"drop_column", "deduplicate", "filter", "delete_rows"})
CHANGES = ASKS_FIRST | {"rename", "sort"}
AT_OFFER = ("correct", "hedge", "aside", "stop", "switch", "made_up", "stale")
AT_QUESTION = ("aside", "premature", "stop")
_OFFERS = (
    ("drop_column", r"column (?P<column>\w+) would be gone from (?P<table>\w+)"),
    ("filter", r"rows of (?P<table>\w+) would stay (?P<condition>where .*?), and"),
    ("delete_rows", r"rows of (?P<table>\w+) would go (?P<condition>where .*?)\. Shall"),
    ("undo", r"(?m)^Undoing a change"),
    ("deduplicate", r"rows of (?P<table>\w+) repeats? (?:an )?earlier ones?(?: in (?P<column>\w+) alone)?"),
    (
        "rename",
        r"(?s)Renaming a column:.*table: (?P<table>\S+).*column: (?P<column>\S+).*name: (?P<new_name>\S+)",
    ),
    ("sort", r"(?s)Sorting a table:.*table: (?P<table>\S+).*order: (?P<order>\S+)"),
)
_QUESTIONS = (
    ("table", r"Which table"), ("order", r"Sort by which"), ("column", r"[Ww]hich column|column should"),
    ("condition", r"Which rows"), ("new_name", r"should it be called"),
)  # fmt: skip


class Analytics:
    folder = "analytics"
    invented = ("table", "column", "condition", "new_name", "order")

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar

    async def invent_goal(self, chance: Random) -> list[Wish]:
        kinds = chance.choices(
            ("drop_column", "deduplicate", "filter", "delete_rows", "rename", "sort", "ask", "count"),
            (3, 1, 3, 3, 2, 2, 3, 1), k=chance.choice([1, 2, 2]),
        )  # fmt: skip
        wishes: list[Wish] = []
        for kind in kinds:
            taken = {wish.values["table"] for wish in wishes}
            table = chance.choice([one for one in DROPPABLE if one not in taken])
            table = "iris" if kind == "deduplicate" and "iris" not in taken else table
            what = "filter" if kind == "deduplicate" and table != "iris" else kind
            wishes.append(Wish(what, {"table": table, **_values(what, table, chance)}, _twists(what, chance)))
        # Tables are asked about as their files have them.
        wishes.sort(key=lambda wish: wish.kind not in {"ask", "count"})
        last = wishes[-1]
        if last.kind in CHANGES and chance.random() < 0.2:
            wishes.append(Wish("undo", {}, about=last))
        return wishes

    def opening(self, wish: Wish) -> str:
        return wish.kind

    def dact(self, wish: Wish) -> str:
        return DACTS[wish.kind]

    def word(self, slot: str, value: Any, chance: Random) -> dict[str, str]:
        return {
            slot: str(value).replace("_", chance.choice(["_", " "]))
            if slot in {"column", "order"}
            else str(value)
        }

    def model_slots(self, slots: Mapping[str, Any]) -> Values:
        return {
            slot: FUNCTIONS.get(value, value) if slot == "function" else value
            for slot, value in slots.items()
        }

    def invent(self, slot: str, chance: Random) -> Any:
        table = chance.choice(sorted(DROPPABLE))
        known = {"table": sorted(DROPPABLE), "column": DROPPABLE[table], "order": NUMERIC[table],
                 "condition": CONDITIONS[table], "new_name": NEW_NAMES, "function": sorted(FUNCTIONS),
                 "direction": ("ascending", "descending")}  # fmt: skip
        return chance.choice(known[slot])

    def changeable(self, wish: Wish) -> Sequence[str]:
        return list(wish.values)

    def changed(self, wish: Wish) -> None:
        """A column or condition of another table is none of this one: then one of its own is meant."""
        table, chance = wish.values["table"], Random(str(wish.values))
        for slot, known in (("column", DROPPABLE), ("condition", CONDITIONS), ("order", NUMERIC)):
            if slot in wish.values and wish.values[slot] not in known[table]:
                wish.values[slot] = chance.choice(known[table])

    def tails(self, wish: Wish, said: frozenset[str]) -> Sequence[str]:
        return ()

    def read(self, text: str, actions: Sequence[Mapping[str, Any]]) -> Seen:
        def seen(kind: str, what: str = "", values: Values | None = None) -> Seen:
            return Seen(kind, what, values or {}, (), "", text, actions)

        if any(action["name"] == "compensate_effect" for action in actions):
            return seen("redo")
        if re.search(r"Shall I [^?]*\?\s*$", text, re.MULTILINE):
            return seen("offer", *_read_offer(text))
        asked = [line for line in text.split("\n") if "?" in line]
        if asked and "like to change?" in asked[-1]:
            return seen("change")
        for slot, pattern in _QUESTIONS:
            if asked and re.search(pattern, asked[-1]):
                return seen("question", slot)
        return seen("nothing")

    def hear(self, wish: Wish, seen: Seen, agreement: Agreement | None) -> None:
        if not wish.is_open:
            return
        said = seen.text
        if wish.kind in ASKS_FIRST:
            agreed = agreement is not None and agreement.wish is wish
            wish.told = agreed and bool(
                re.search(r"I have (dropped|removed|taken|kept|deleted|filtered)|nothing to", said)
            )
            nothing_to_do = wish.kind == "deduplicate" and has_no_duplicates(wish.values["table"])
            wish.told = wish.told or (nothing_to_do and "nothing to remove" in said)
        elif wish.kind == "rename":
            wish.told = f"renamed {wish.values['column']}" in said
        elif wish.kind == "sort":
            wish.told = f"sorted {wish.values['table']}" in said
        elif wish.kind == "undo":
            wish.told = said.startswith("Undone")
        else:
            wish.told = self._answers(wish, said)

    def _answers(self, wish: Wish, said: str) -> bool:
        """Whether the figure that was asked for is in the answer."""
        numbers = [float(one.replace(",", "")) for one in re.findall(r"-?[\d,]*\d(?:\.\d+)?", said)]
        if wish.kind == "count":
            return len(rows_of(wish.values["table"])) in numbers
        right = figure(wish.values["table"], wish.values["column"], wish.values["function"])
        return any(abs(one - right) <= 0.011 * max(1, abs(right) / 100) for one in numbers)

    def choose(self, wish: Wish, seen: Seen, chance: Random) -> None:
        """Lists of rows are not chosen from."""

    def deeds(self, wish: Wish) -> list[Deed]:
        if wish.told or wish.kind not in {*CHANGES, "undo"}:
            return []
        return [Deed(wish.kind, dict(wish.values))]

    def differences(self, offer: Seen, deed: Deed) -> list[str]:
        if offer.what != deed.kind:
            return ["kind"]
        return [slot for slot, value in offer.values.items()
                if value.lower() != str(deed.values.get(slot, "")).lower()]  # fmt: skip

    # The store: the steps in force, each with the tables it made

    async def look(self, records: Records | None) -> Store:
        if records is None:
            return {}
        steps = await records.find("steps", limit=100)
        return {str(step["number"]): step for step in steps if not step["undone_by"]}

    def effects(self, before: Store, after: Store) -> list[Effect]:
        new = [
            Effect("changed", key, _describe(step, before))
            for key, step in after.items()
            if key not in before
        ]
        return new + [
            Effect("undone", key, {"action": before[key]["action"]}) for key in before if key not in after
        ]

    def permits(self, effect: Effect, agreement: Agreement | None, wish: Wish | None) -> bool:
        if effect.kind == "undone":
            return (agreement is not None and bool(agreement.undo)) or (
                wish is not None and wish.kind == "undo"
            )
        if agreement is not None and agreement.deed is not None:
            return _is_as_wanted(effect.values, agreement.deed.kind, agreement.deed.values)
        return (
            wish is not None
            and wish.kind in {"rename", "sort"}
            and _is_as_wanted(effect.values, wish.kind, wish.values)
        )

    def untruths(
        self, seen: Seen, store: Store, wishes: Sequence[Wish], effects: Sequence[Effect]
    ) -> list[str]:
        told = re.findall(
            r"^I have ((?:dropped|removed|taken|kept|deleted|renamed|sorted)[^.:]*)", seen.text, re.MULTILINE
        )
        found = [f"says “{one[:50]}”, and it is not done" for one in told if not effects]
        if re.search(r"^Undone", seen.text, re.MULTILINE) and not any(
            effect.kind == "undone" for effect in effects
        ):
            found.append("says that it is undone, and it is not")
        silent = [effect for effect in effects if not re.search(r"I have |Undone|undone", seen.text)]
        return found + [f"{effect.kind} and does not say so: {effect}" for effect in silent]

    def missing(self, wishes: Sequence[Wish], store: Store) -> list[str]:
        return [f"{wish.kind} {wish.values} was not done" for wish in wishes if wish.is_open]


def _values(kind: str, table: str, chance: Random) -> Values:
    match kind:
        case "drop_column":
            return {"column": chance.choice(DROPPABLE[table])}
        case "filter" | "delete_rows":
            return {"condition": chance.choice(CONDITIONS[table])}
        case "rename":
            return {"column": chance.choice(DROPPABLE[table]), "new_name": chance.choice(NEW_NAMES)}
        case "sort":
            return {
                "order": chance.choice(NUMERIC[table]),
                "direction": chance.choice(["ascending", "descending"]),
            }
        case "ask":
            return {"column": chance.choice(NUMERIC[table]), "function": chance.choice(sorted(FUNCTIONS))}
        case _:
            return {}


def _twists(kind: str, chance: Random) -> list[tuple[str, str]]:
    drawn = [("question", chance.choice(AT_QUESTION))] if chance.random() < 0.2 else []
    if kind in ASKS_FIRST and chance.random() < 0.55:
        drawn.append(("offer", chance.choice(AT_OFFER)))
    return drawn


def _read_offer(text: str) -> tuple[str, Values]:
    for kind, pattern in _OFFERS:
        found = re.search(pattern, text)
        if found:
            return kind, {slot: value.rstrip(" .!") for slot, value in found.groupdict().items() if value}
    return "something else", {"text": text[-80:]}


def _describe(step: Mapping[str, Any], before: Store) -> Values:
    """What a step made of a table: its columns and rows, and those it had."""
    made = step["makes"][0]
    earlier = [one["makes"][0] for one in before.values() if one["makes"][0]["name"] == made["name"]]
    columns = [name for name, _ in earlier[-1]["columns"]] if earlier else columns_of(made["name"])
    rows = earlier[-1]["rows"] if earlier else len(rows_of(made["name"]))
    return {"table": made["name"], "columns": [name for name, _ in made["columns"]], "rows": made["rows"],
            "had_columns": columns, "had_rows": rows, "action": step["action"]}  # fmt: skip


def _is_as_wanted(did: Values, kind: str, wanted: Values) -> bool:
    """Whether a table became what the change should make of it."""
    if did["table"] != wanted["table"]:
        return False
    had, has = did["had_columns"], did["columns"]
    match kind:
        case "drop_column":
            return has == [one for one in had if one != wanted["column"]] and did["rows"] == did["had_rows"]
        case "rename":
            as_named = [wanted["new_name"] if one == wanted["column"] else one for one in had]
            return has == as_named and did["rows"] == did["had_rows"]
        case "sort":
            return has == had and did["rows"] == did["had_rows"] and "sorted" in did["action"]
        case "deduplicate":
            return has == had and did["rows"] == did["had_rows"] - 1
        case _:
            if did["had_rows"] != len(rows_of(wanted["table"])):
                return has == had  # an earlier change took rows: the file cannot say how many fit
            fitting = count_where(wanted["table"], wanted["condition"])
            return has == had and did["rows"] == (fitting if kind == "filter" else did["had_rows"] - fitting)
