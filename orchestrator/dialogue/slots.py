"""Slots: values with their sources, and the types that validate them (FS-3, FS-4).

Every domain has the twelve universal types and can add up to four others, from the library or its own code.
"""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.validation import (
    LONGEST_FREE_TEXT,
    LONGEST_TOKEN,
    MOST_ITEMS,
    Rejected,
    SlotType,
    Valid,
    Verdict,
    as_text,
    check_bounded,
    check_line,
    check_number,
    choose,
    is_bounded_json,
    reject,
    show,
    strip_controls,
)
from orchestrator.types import Json, JsonObject, TurnId, is_list, is_object

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::00)?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}")
_YES = frozenset({"yes", "true", "y", "on"})
_NO = frozenset({"no", "false", "n", "off"})


class SlotSource(StrEnum):
    """The origin of a slot's value."""

    USER = "user"
    INHERITED = "inherited"
    """The value comes from another task or from displayed rows (FS-7)."""
    MEMORY = "memory"
    DEFAULT = "default"
    TOOL = "tool"


@dataclass(slots=True)
class SlotValue:
    """A slot's value.

    `text`: the user's words for the value, or an empty string. `confirmed`: True if the user confirmed exactly
    this value.
    """

    value: Json
    source: SlotSource
    turn_id: TurnId | None = None
    confirmed: bool = False
    text: str = ""

    def serialize(self) -> JsonObject:
        """Return JSON without empty fields. The JSON contains the object `value` itself, not a copy."""
        seldom = {"turn_id": self.turn_id, "confirmed": self.confirmed, "text": self.text}
        body = {"value": self.value, "source": str(self.source)}
        return body | {name: value for name, value in seldom.items() if value}


def check_base(value: Json, spec: SlotSpec) -> Verdict:
    if isinstance(value, bool):
        return Valid(value)
    if isinstance(value, int | float):
        return check_number(value, spec)
    return check_line(value, spec)


def _each(items: list[Json], spec: SlotSpec) -> Verdict:
    kept: list[Json] = []
    for item in items:
        verdict = check_base(item, spec)
        if isinstance(verdict, Rejected):
            return verdict
        if not any(verdict.value == other and type(verdict.value) is type(other) for other in kept):
            kept.append(verdict.value)
    return Valid(kept)


def check_group(value: Json, spec: SlotSpec) -> Verdict:
    """Check a list of simple values and drop duplicates. A single value becomes a list."""
    items = value if is_list(value) else [value]
    if not items:
        return reject("list_empty", spec)
    if len(items) > MOST_ITEMS:
        return reject("too_many_values", spec, most=MOST_ITEMS, count=len(items))
    return _each(items, spec)


def check_entity(value: Json, spec: SlotSpec) -> Verdict:
    """Check the form of an entity name, and that it is one of the slot's `values`, if any.

    NLU checks that the entity exists.
    """
    if isinstance(value, list | dict):
        return reject("not_one_thing", spec, entity=spec.entity)
    verdict = check_line(value, spec)
    if isinstance(verdict, Rejected) or not spec.values:
        return verdict
    return check_category(verdict.value, spec)


def check_removal(value: Json, spec: SlotSpec) -> Verdict:
    return check_group(value, spec) if is_list(value) else check_base(value, spec)


def check_free_text(value: Json, spec: SlotSpec) -> Verdict:
    """Check free text and remove control characters. The slot's `maximum` limits the number of characters."""
    if not isinstance(value, str):
        return reject("not_text", spec, value=show(value))
    longest = int(spec.maximum) if spec.maximum is not None else LONGEST_FREE_TEXT
    if len(value) > longest:
        return reject("text_longer_than", spec, count=len(value), most=longest)
    text = strip_controls(value).strip()
    return Valid(text) if text else reject("text_empty", spec)


def _read_ends(value: Json) -> tuple[Json, Json] | None:
    if is_list(value) and len(value) == 2:
        return value[0], value[1]
    if is_object(value) and value.keys() <= {"low", "high"} and value:
        return value.get("low"), value.get("high")
    return None


def check_range(value: Json, spec: SlotSpec) -> Verdict:
    """Check a range, `[low, high]` or an object, in ascending order. An open end (null) becomes the slot's limit."""
    ends = _read_ends(value)
    if ends is None:
        return reject("not_range", spec)
    numbers: list[Json] = []
    for end, bound in zip(ends, (spec.minimum, spec.maximum), strict=True):
        verdict = check_bounded(bound if end is None else end, spec)
        if isinstance(verdict, Rejected):
            return verdict
        numbers.append(verdict.value)
    low, high = numbers
    if low > high:
        return reject("range_reversed", spec, low=show(low), high=show(high))
    return Valid([low, high])


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def check_exact(value: Json, spec: SlotSpec) -> Verdict:
    """Check a token: one of `values`, a match of `pattern`, or a single word if the slot declares neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = as_text(value)
    verdict = check_line(value, spec, longest=LONGEST_TOKEN)
    if isinstance(verdict, Rejected):
        return verdict
    token = verdict.value
    fits = token in spec.values or (
        bool(_compile(spec.pattern).fullmatch(token))
        if spec.pattern
        else not spec.values and " " not in token
    )
    if fits:
        return verdict
    given: JsonObject = {"value": show(token), "choices": list(spec.values)}
    return reject("not_exact", spec, **given, pattern=spec.pattern, example=spec.description.rstrip("."))


def check_dictionary(value: Json, spec: SlotSpec) -> Verdict:
    """Check a non-empty object of limited size and depth."""
    if not is_object(value) or not value:
        return reject("not_named_values", spec, value=show(value))
    if len(value) > MOST_ITEMS:
        return reject("too_many_names", spec, most=MOST_ITEMS, count=len(value))
    if not is_bounded_json(value):
        return reject("too_large_or_nested", spec)
    return Valid(value)


def check_category(value: Json, spec: SlotSpec) -> Verdict:
    """Check a declared value or synonym, ignoring case, or an entity if the slot declares no values."""
    if not spec.values:
        return check_entity(value, spec)
    line = check_line(as_text(value) or value, spec)
    if isinstance(line, Rejected):
        return line
    chosen = choose(line.value, spec)
    if chosen is not None:
        return Valid(chosen)
    return reject("not_a_choice", spec, value=show(line.value), choices=list(spec.values))


def check_checklist(value: Json, spec: SlotSpec) -> Verdict:
    """Check a selection of the declared values, and return it in the declared order."""
    items = value if is_list(value) else [value]
    if not items:
        return reject("nothing_chosen", spec, choices=list(spec.values))
    if len(items) > MOST_ITEMS:
        return reject("too_many_values", spec, most=MOST_ITEMS, count=len(items))
    chosen: set[str] = set()
    for item in items:
        verdict = check_category(item, spec)
        if isinstance(verdict, Rejected):
            return verdict
        chosen.add(verdict.value)
    return Valid([value for value in spec.values or sorted(chosen) if value in chosen])


UNIVERSAL = (
    SlotType("base", check_base, "one simple value"),
    SlotType("group", check_group, "several simple values"),
    SlotType("source", check_entity, "the source of something"),
    SlotType("target", check_entity, "the target of something"),
    SlotType("removal", check_removal, "the thing to remove"),
    SlotType("free_text", check_free_text, "the user's own words"),
    SlotType("level", check_bounded, "a number within limits"),
    SlotType("range", check_range, "a lower and a higher number"),
    SlotType("exact", check_exact, "a literal token"),
    SlotType("dictionary", check_dictionary, "named values"),
    SlotType("category", check_category, "one of the declared values"),
    SlotType("checklist", check_checklist, "some of the declared values"),
)
LIST_TYPES = frozenset({"group", "checklist"})
"""The slot types whose values are lists."""


LAST_YEAR = 3999
"""Last year of dates. Counting from one date to another then stays within the calendar, which ends in 9999."""


def check_date(value: Json, spec: SlotSpec) -> Verdict:
    matched = _DATE.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if matched is None:
        return reject("not_date", spec, value=show(value))
    year, month, day = (int(part) for part in matched.groups())
    if year < 1:
        return reject("no_year_0", spec, value=show(value))
    if year > LAST_YEAR:
        return reject("too_far_ahead", spec)
    if not 1 <= month <= 12:
        return reject("no_such_month", spec, value=show(value))
    days = monthrange(year, month)[1]
    if not 1 <= day <= days:
        return reject("no_such_day", spec, value=show(value), month=month, year=year, days=days)
    return Valid(matched.group())


def check_time(value: Json, spec: SlotSpec) -> Verdict:
    matched = _TIME.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if matched is None:
        return reject("not_time", spec, value=show(value))
    hour, minute = int(matched.group(1)), int(matched.group(2))
    if hour > 23 or minute > 59:
        return reject("no_such_time", spec, value=show(value))
    return Valid(f"{hour:02d}:{minute:02d}")


def _read_money(value: Json, spec: SlotSpec) -> tuple[Json, Json]:
    if is_object(value):
        return value.get("amount"), value.get("currency")
    return value, spec.values[0] if len(spec.values) == 1 else None


def check_money(value: Json, spec: SlotSpec) -> Verdict:
    """Check `{amount, currency}`.

    `values` are the possible currencies. With a single currency, a bare amount is enough.
    """
    amount, currency = _read_money(value, spec)
    verdict = check_bounded(amount, spec)
    if isinstance(verdict, Rejected):
        return verdict
    if verdict.value < 0:
        return reject("negative", spec, value=show(amount))
    code = currency.strip().upper() if isinstance(currency, str) else ""
    if spec.values and code not in spec.values:
        return reject("no_currency", spec, choices=list(spec.values))
    if not _CURRENCY.fullmatch(code):
        return reject("no_currency", spec, choices=[])
    return Valid({"amount": verdict.value, "currency": code})


def check_boolean(value: Json, spec: SlotSpec) -> Verdict:
    if isinstance(value, bool):
        return Valid(value)
    word = value.strip().casefold() if isinstance(value, str) else ""
    if word in _YES or word in _NO:
        return Valid(word in _YES)
    return reject("not_yes_or_no", spec, value=show(value))


LIBRARY = (
    SlotType("date", check_date, "a calendar date, yyyy-mm-dd"),
    SlotType("time", check_time, "a time of day, HH:MM"),
    SlotType("money", check_money, "an amount with its currency"),
    SlotType("number", check_bounded, "any number, within the declared limits"),
    SlotType("boolean", check_boolean, "yes or no"),
)

UNIVERSAL_TYPES: Mapping[str, SlotType] = {kind.name: kind for kind in UNIVERSAL}
LIBRARY_TYPES: Mapping[str, SlotType] = {kind.name: kind for kind in LIBRARY}
SLOT_TYPES: Mapping[str, SlotType] = {**UNIVERSAL_TYPES, **LIBRARY_TYPES}


@dataclass(frozen=True, slots=True)
class SlotTypes:
    """The slot types of one domain: the twelve universal types and up to four additional types."""

    types: Mapping[str, SlotType]

    def find(self, name: str) -> SlotType | None:
        """Return the type with this name, or None. Spaces and dashes are treated as underscores."""
        return self.types.get(name) or self.types.get(name.strip().replace(" ", "_").replace("-", "_"))

    def validate(self, value: Json, spec: SlotSpec) -> Verdict:
        """Validate a value for the slot. Null, and slots with an unknown type, are always rejected."""
        if value is None:
            return reject("no_value_yet", spec)
        kind = self.find(spec.type)
        if kind is None:
            return reject("unknown_type", spec, type=spec.type)
        return kind.check(value, spec)


EVERY_TYPE = SlotTypes(SLOT_TYPES)
"""All universal and library types, for flow classes without a domain."""


def check_any(value: Json, spec: SlotSpec) -> Verdict:
    """Check JSON of limited size, for inputs that a flow declares without a slot."""
    if is_bounded_json(value):
        return Valid(value)
    return reject("too_large_or_nested", spec)
