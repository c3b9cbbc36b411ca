"""Dates that depend on other dates: in the same message, or in the running task.

Examples: "3 to 6 December", "monday to friday", "a day later", "half an hour earlier".
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.dates import DAY, MONTH, ORDINALS, WEEKDAYS, find_dates
from orchestrator.nlu.system1.extract.found import DATE, Found, Reading
from orchestrator.nlu.system1.extract.misspelling import SHORTEST_MISSPELT, spell
from orchestrator.nlu.system1.extract.numbers import read_words
from orchestrator.nlu.system1.extract.times import nearest_hour
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.saying import say
from orchestrator.types import Json

_JOINED = r"\s*(?:\b(?P<word>to|until|till|through|and|or)\b|[-–—])\s*(?:the\s+)?"  # as people type it
_BEFORE = re.compile(rf"\b(?P<day>{DAY}){_JOINED}$", re.IGNORECASE)
"""A day before a day with its month: "3 to" before "6 December"."""
_AFTER = re.compile(
    rf"{_JOINED}\b(?P<day>{DAY})(?!\w|:\d|\s?[ap]\.?m\b)(?!(?:\s+of)?\s+{MONTH})", re.IGNORECASE
)
"""A day after a day with its month: "to 6" after "December 3"."""
_NAMED = re.compile(rf"\b{MONTH}", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{MONTH}\s+(?:the\s+)?{DAY}$", re.IGNORECASE)
_MONTH_BEFORE = re.compile(rf"\b{MONTH}\s+(?:the\s+)?$", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+)?$", re.IGNORECASE)


_SPELT = word_set(
    "monday tuesday wednesday thursday friday saturday sunday tomorrow "
    "january february august september october november december"
)
"""Names of days and months that are long enough to recognize misspelled."""
_SHIFT = re.compile(
    r"\b(?P<count>an?|half an|one|two|three|four|five|six|seven|\d{1,2}) "
    r"(?P<unit>day|night|week|hour|minute)s? (?P<way>later|earlier|sooner|longer|shorter)\b"
)
_MINUTES = {"hour": 60, "minute": 1}
SHIFTS = word_set("later earlier sooner longer shorter")
_BACKWARDS = word_set("earlier sooner shorter")
_LENGTHS = word_set("longer shorter")
_MINUTES_OF_DAY = 1440
_LAST = word_set("return returning back home")
_FIRST = word_set("leave leaving depart departing outbound")


def find_days(utterance: Utterance, today: date, known: Collection[str] = ()) -> list[Found]:
    """Find dates like `find_dates`, and resolve dates that depend on other dates.

    Correct misspelled months and weekdays. If two corrections are possible, both dates are candidates.
    `known`: words that are spelled correctly.
    """
    misspelt = [
        (place, meant)
        for place, word in enumerate(utterance.words)
        if len(word) >= SHORTEST_MISSPELT and word not in known and (meant := _spell(word))
    ]
    if not misspelt:
        return _find_together(utterance, today)
    readings: dict[tuple[int, int], list[Found]] = {}
    for choice in range(max(len(meant) for _, meant in misspelt)):
        text = utterance.text
        for place, meant in reversed(misspelt):
            text = (
                text[: utterance.starts[place]] + meant[choice % len(meant)] + text[utterance.ends[place] :]
            )
        spelt = tokenize(text)
        for one in _find_together(spelt, today):
            readings.setdefault(spelt.token_span(one.start, one.end), []).append(one)
    return [
        Found(utterance.starts[first], utterance.ends[last - 1], DATE, _either(alike))
        for (first, last), alike in readings.items()
    ]


def _either(alike: list[Found]) -> Reading:
    """Merge readings of the same words, with candidates if the readings differ."""
    values = tuple(sorted({str(one.reading.value) for one in alike if one.reading.value is not None}))
    return Reading(candidates=values) if len(values) > 1 else alike[0].reading


@lru_cache(maxsize=4096)
def _spell(word: str) -> tuple[str, ...]:
    """Return the months or weekdays that a word may misspell, or nothing if the word is spelled correctly."""
    return spell(word, _SPELT)


def _find_together(utterance: Utterance, today: date) -> list[Found]:
    found = find_dates(utterance, today)
    shared = [two for one in found for two in _share_month(one, utterance.text, today)]
    if shared:
        found = [one for one in found if all(one.end <= two.start or two.end <= one.start for two in shared)]
    return _follow_on(found + shared, utterance.text)


def _share_month(one: Found, text: str, today: date) -> list[Found]:
    """Parse days before or after a full date: "3 to 6 December" is two days, "3 or 4 December" a choice.

    Without "between", "and" joins no days: "for 2 and 6 December" counts people.
    """
    if one.reading.value is None or _NAMED.search(text, one.start, one.end) is None:
        return []
    joined, is_earlier = _BEFORE.search(text, 0, one.start), True
    if joined is not None and _MONTH_BEFORE.search(text, 0, joined.start()):
        return []  # "December 3 to 6 January"
    if joined is None and _MONTH_FIRST.search(text, one.start, one.end):
        joined, is_earlier = _AFTER.match(text, one.end), False
    if joined is None:
        return []
    start, end = joined.span("day")
    word = (joined["word"] or "to").lower()
    if word == "and" and _BETWEEN.search(text, 0, min(start, one.start)) is None:
        return []
    known = date.fromisoformat(str(one.reading.value))
    number = _number_of(joined["day"])
    if word == "or":
        days = [day for day in (known, _in_month(known, number)) if day is not None]
        both = Reading(candidates=tuple(day.isoformat() for day in sorted(days)))
        return [Found(min(start, one.start), max(end, one.end), DATE, both)]
    other = _nearest(number, known, is_earlier=is_earlier)
    if other is None or other < today:
        return []
    return [one, Found(start, end, DATE, Reading(other.isoformat()))]


def _number_of(day: str) -> int:
    text = day.lower()
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else ORDINALS[text]


def _nearest(number: int, known: date, *, is_earlier: bool) -> date | None:
    """Return the last day with this number before a known date, or the first such day after the date."""
    month = known.replace(day=1)
    if is_earlier and number >= known.day:
        month = (month - timedelta(days=1)).replace(day=1)
    elif not is_earlier and number <= known.day:
        month = (month + timedelta(days=31)).replace(day=1)
    return _in_month(month, number)


def _in_month(month: date, number: int) -> date | None:
    try:
        return month.replace(day=number)
    except ValueError:
        return None


def _follow_on(found: list[Found], text: str) -> list[Found]:
    """Interpret a weekday after another day: on a Friday, "monday to friday" does not end today."""
    ordered = sorted(found, key=lambda one: one.start)
    for place, (one, other) in enumerate(pairwise(ordered), start=1):
        begins, ends = one.reading.value, other.reading.value
        if text[other.start : other.end].lower() in WEEKDAYS and begins and ends:
            late = (date.fromisoformat(str(begins)) - date.fromisoformat(str(ends))).days
            if late > 0:
                later = date.fromisoformat(str(ends)) + timedelta(days=late + -late % 7)
                ordered[place] = other._replace(reading=Reading(later.isoformat()))
    return ordered


def find_shifted(utterance: Utterance, flow: FlowSpec, context: NluContext) -> dict[str, Mention]:
    """Move the mentioned days or hours of the running task.

    For another flow, move the task's values in slots with the same meaning: “move the trip a day later”.
    """
    found = _SHIFT.search(" ".join(utterance.words))
    if context.active is None or found is None:
        return {}
    is_own = context.active.dact == flow.dact
    if found["unit"] in _MINUTES:
        return _shift_hours(found, _held_by(flow, "time", context.values, is_own=is_own))
    held = _held_by(flow, "date", context.values, is_own=is_own)
    if not held or (len(held) < 2 and found["way"] in _LENGTHS):
        return {}
    names, words = list(held), set(utterance.words)
    if len(held) > 1 and (found["way"] in _LENGTHS or words & _LAST):
        names = names[-1:]
    elif words & _FIRST:
        names = names[:1]
    days = timedelta(_count(found["count"]) * (7 if found["unit"] == "week" else 1))
    days = -days if found["way"] in _BACKWARDS else days
    return {name: Mention(str(date.fromisoformat(held[name]) + days), found[0]) for name in names}


def _held_by(flow: FlowSpec, kind: str, values: Mapping[str, Json], *, is_own: bool) -> dict[str, str]:
    """Return the running task's values for a flow's slots of one type."""
    held: dict[str, str] = {}
    for slot in flow.slots.values():
        names = (slot.name,) if is_own else slot.same_as
        value = next((value for name in names if (value := values.get(name))), None)
        if slot.type == kind and value is not None:
            held[slot.name] = str(value)
    return held


def _shift_hours(found: re.Match[str], held: Mapping[str, str]) -> dict[str, Mention]:
    """Move the only time in the running task, within the same day."""
    if len(held) != 1 or found["way"] in _LENGTHS:
        return {}
    [(name, value)] = held.items()
    is_half = found["count"] == "half an"
    minutes = 30 if is_half else _count(found["count"]) * _MINUTES[found["unit"]]
    hour, minute = map(int, value.split(":")[:2])
    moved = hour * 60 + minute + (-minutes if found["way"] in _BACKWARDS else minutes)
    if not 0 <= moved < _MINUTES_OF_DAY:
        return {name: Mention(None, found[0], invalid=say("on_another_day"))}
    return {name: Mention(f"{moved // 60:02d}:{moved % 60:02d}", found[0])}


def _count(said: str) -> int:
    return 1 if said in {"a", "an"} else int(said) if said.isdecimal() else read_words([said], 0)[1]


def count_from(
    mentions: Mapping[str, Mention], flow: FlowSpec, held: Mapping[str, Json]
) -> dict[str, Mention]:
    """Resolve a bare weekday or hour relative to the value to change, not to today or midnight (IR-6)."""
    return {
        name: _count_one(mention, flow.slots.get(name), held.get(name)) for name, mention in mentions.items()
    }


def _count_one(mention: Mention, slot: SlotSpec | None, held: Json) -> Mention:
    if slot is None or not isinstance(held, str) or not isinstance(mention.value, str):
        return mention
    if slot.type == "date":
        return _count_day(mention, held)
    return (
        replace(mention, value=nearest_hour(mention.value, mention.text, held))
        if slot.type == "time"
        else mention
    )


def _count_day(mention: Mention, held: str) -> Mention:
    weekday = WEEKDAYS.get(mention.text.strip().casefold())
    if weekday is None:
        return mention
    day = date.fromisoformat(held)
    return replace(mention, value=str(day + timedelta((weekday - day.weekday()) % 7)))
