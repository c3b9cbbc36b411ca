"""Search for dates, absolute or relative to the day of the turn. Values have the form yyyy-mm-dd.

Fast patterns find most dates. The slow dateparser library parses only answers to questions about a date.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from dateutil.relativedelta import relativedelta

from orchestrator.dialogue.slots import LAST_YEAR
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.system1.extract.found import DATE, Found, Reading, reading_of
from orchestrator.nlu.system1.extract.numbers import ORDINAL_NAMES, UNITS
from orchestrator.nlu.system1.extract.times import nearest_hour
from orchestrator.nlu.text import Utterance
from orchestrator.saying import say
from orchestrator.types import Json

_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTHS = {name[:length]: at for at, name in enumerate(_MONTH_NAMES, 1) for length in (3, len(name))} | {
    "sept": 9
}
_WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {
    **{name[:length]: at for at, name in enumerate(_WEEKDAY_NAMES) for length in (3, len(name))},
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
ORDINALS = {
    **{name: number for number, name in enumerate(ORDINAL_NAMES, 1)},
    **{f"twenty{sep}{name}": 20 + number for number, name in enumerate(ORDINAL_NAMES[:9], 1) for sep in "- "},
    "thirtieth": 30,
    "thirty-first": 31,
    "thirty first": 31,
}
_AMOUNTS = {word: value for word, value in UNITS.items() if value} | {"a": 1, "an": 1, "a couple of": 2}


def _any(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_MONTH = rf"(?P<month>{_any(_MONTHS)})\b\.?"
_DAY = rf"(?P<day>\d{{1,2}}(?!\d)|{_any(ORDINALS)})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?P<year>\d{4})\b)?"
_WEEKDAY = rf"({_any(WEEKDAYS)})"
_AMOUNT = rf"(\d{{1,3}}|{_any(_AMOUNTS)})"
_DAY_NUMBER = rf"(\d{{1,2}}(?=st|nd|rd|th)|{_any(ORDINALS)})(?:st|nd|rd|th)?"
_PREFIX = rf"(?:{_WEEKDAY}\b,?\s+(?:the\s+)?)?"


def find_dates(utterance: Utterance, today: date) -> list[Found]:
    """Find dates, including invalid dates such as "February 30"."""
    return list(_find(utterance.text, today))


@lru_cache(maxsize=4096)
def _find(text: str, today: date) -> tuple[Found, ...]:
    found: list[Found] = []
    lower = text.lower()
    readers = [one for one in _READERS if any(piece in lower for piece in one[0])]
    for _, pattern, read in readers:
        for match in pattern.finditer(text):
            if any(item.start < match.end() and match.start() < item.end for item in found):
                continue
            reading = read(match, today)
            if reading is not None:
                found.append(Found(match.start(), match.end(), DATE, reading))
    return tuple(found)


@lru_cache(maxsize=1024)
def read_loosely(text: str, today: date) -> str | None:
    """Use dateparser to parse an answer that no pattern matches. Return a date as yyyy-mm-dd, or None."""
    import dateparser  # noqa: PLC0415 - heavy, and rarely needed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        settings = {
            "RELATIVE_BASE": datetime(today.year, today.month, today.day),  # noqa: DTZ001 - days have no zone
            "PREFER_DATES_FROM": "future",
        }
        parsed = dateparser.parse(text, languages=["en"], settings=settings)
    return parsed.date().isoformat() if parsed else None


def _exact(year: int, month: int, day: int) -> Reading:
    if year > LAST_YEAR:
        return Reading(invalid=say("too_far_ahead"))
    try:
        return Reading(date(year, month, day).isoformat())
    except ValueError:
        return Reading(invalid=say("no_day_in_month", day=day, month=month, year=year))


def _coming(month: int, day: int, today: date) -> Reading:
    """Return the next date with this month and day, from today on. For February 29, use the next leap year."""
    for year in range(today.year, today.year + 9):
        try:
            when = date(year, month, day)
        except ValueError:
            continue
        if when >= today:
            return Reading(when.isoformat())
    return Reading(invalid=say("no_day_of_month", day=day, month=month))


def _read_iso(match: re.Match[str], _today: date) -> Reading:
    return _exact(int(match.group(1)), int(match.group(2)), int(match.group(3)))


def _read_numeric(match: re.Match[str], today: date) -> Reading | None:
    """Parse 3/4 or 3.4.2026. Without dots, both orders of day and month are candidates. With dots, the day is first."""
    first, second = int(match.group(1)), int(match.group(3))
    year = int(match.group(4)) if match.group(4) else None
    if year is not None and year < 100:
        year += 2000
    readings = [
        _exact(year, month, day) if year else _coming(month, day, today)
        for month, day in ((second, first), (first, second))
        if 1 <= month <= 12
    ]
    values = tuple(dict.fromkeys(reading.value for reading in readings if reading.value))
    if not values:
        return Reading(invalid=say("not_a_date", text=match.group()))
    if len(values) == 1 or match.group(2) == ".":
        return Reading(values[0])
    return Reading(candidates=values)


def _read_named(match: re.Match[str], today: date) -> Reading:
    said, month, year = match["day"].lower(), _MONTHS[match["month"].lower()], match["year"]
    day = int(said) if said.isdigit() else ORDINALS[said]
    return _exact(int(year), month, day) if year else _coming(month, day, today)


_SIMPLE = {"today": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "yesterday": -1}


def _read_simple(match: re.Match[str], today: date) -> Reading:
    return _after(today, _SIMPLE.get(match.group().lower(), 2))


def _read_amount(match: re.Match[str], today: date) -> Reading | None:
    amount_text = match.group("amount").lower()
    amount = int(amount_text) if amount_text.isdigit() else _AMOUNTS[amount_text]
    unit, since = match.group("unit").lower(), (match.groupdict().get("since") or "").lower()
    if since in WEEKDAYS:
        today += timedelta(days=(WEEKDAYS[since] - today.weekday()) % 7)
    today += timedelta(days=since == "tomorrow")
    if unit.startswith("month"):
        return _add_months(today, amount)
    if unit.startswith("year"):
        return _add_months(today, 12 * amount)
    return _after(today, amount * (7 if unit.startswith("week") else 1))


def _read_weekday(match: re.Match[str], today: date) -> Reading:
    """Parse a weekday: "friday" is today or the next Friday, "next friday" is the Friday of the following week."""
    which = (match.group(1) or "").lower()
    ahead = (WEEKDAYS[match.group(2).lower()] - today.weekday()) % 7
    later = match.group(3)
    if which == "last":
        return _after(today, ahead - 7)
    if which == "next" or (later and "next" in later.lower()):
        return _after(today, WEEKDAYS[match.group(2).lower()] - today.weekday() + 7)
    if later:
        return _after(today, ahead + 7)
    return _after(today, ahead)


def _read_week(match: re.Match[str], today: date) -> Reading:
    which = (match.group(1) or match.group(3)).lower()
    unit = (match.group(2) or match.group(4)).lower()
    if unit == "weekend":
        return _after(today, 5 - today.weekday() + 7 if which == "next" else (5 - today.weekday()) % 7)
    if unit == "week":
        return _one_of([today + timedelta(days=7 - today.weekday() + ahead) for ahead in range(7)], today)
    return _add_months(today.replace(day=1), 1)


def _read_ordinal(match: re.Match[str], today: date) -> Reading:
    """Parse "the 3rd" as today or the next day with this number."""
    text = (match.group(1) or match.group(2)).lower()
    day = int(text) if text.isdigit() else ORDINALS[text]
    for ahead in range(13):
        with suppress(ValueError):  # a month without that day
            if (when := (today.replace(day=1) + relativedelta(months=ahead)).replace(day=day)) >= today:
                return Reading(when.isoformat())
    return Reading(invalid=say("no_month_has_day", day=day))


def _after(today: date, days: int) -> Reading:
    return Reading((today + timedelta(days=days)).isoformat())


def _add_months(today: date, months: int) -> Reading:
    try:
        return Reading((today + relativedelta(months=months)).isoformat())
    except ValueError:
        return Reading(invalid=say("too_far_ahead"))


def _read_first_of(match: re.Match[str], today: date) -> Reading:
    """Parse "the first weekend of December" as several days, and "the first Monday of December" as one day.

    The first week of a month is its first seven days.
    """
    number, year = _MONTHS[match["month"].lower()], match["year"]
    begin = _exact(int(year) if year else today.year + (number < today.month), number, 1)
    if begin.value is None:
        return begin
    begins = date.fromisoformat(str(begin.value))
    what = match["what"].lower()
    weekday = 5 if what == "weekend" else WEEKDAYS.get(what, begins.weekday())
    first = begins + timedelta(days=(weekday - begins.weekday()) % 7)
    days = {"weekend": 2, "week": 7}.get(what, 1)
    return _one_of([first + timedelta(days=ahead) for ahead in range(days)], today)


def _one_of(days: list[date], today: date) -> Reading:
    return reading_of(tuple(day.isoformat() for day in days if day >= today))


_Reader = Callable[[re.Match[str], date], Reading | None]


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_DIGITS = tuple("0123456789")
_IN_MONTH = tuple(name[:3] for name in _MONTH_NAMES)
_ON_WEEKDAY = tuple(name[:3] for name in _WEEKDAY_NAMES)
_READERS: tuple[tuple[tuple[str, ...], re.Pattern[str], _Reader], ...] = (
    (_DIGITS, _compiled(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)"), _read_iso),
    (_DIGITS, _compiled(r"(?<![\d/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/])"), _read_numeric),
    (_DIGITS, _compiled(r"(?<![\d/.])(\d{1,2})(/)(\d{1,2})()(?![\d/])"), _read_numeric),
    (_DIGITS, _compiled(r"(?<![\d/.])(\d{1,2})(\.)\s?(\d{1,2})()\.(?!\d)"), _read_numeric),
    (("first",), _compiled(rf"\bfirst\s+(?P<what>weekend|week|{_any(WEEKDAYS)})\s+(?:of|in)\s+{_MONTH}(?!\w){_YEAR}"),
     _read_first_of),
    (_IN_MONTH, _compiled(rf"{_PREFIX}\b{_MONTH}\s+(?:the\s+)?{_DAY}(?!\w|:\d|\s?[ap]\.?m){_YEAR}"), _read_named),
    (_IN_MONTH, _compiled(rf"{_PREFIX}\b{_DAY}(?:\s+of)?\s+{_MONTH}(?!\w){_YEAR}"), _read_named),
    (("in ",), _compiled(rf"\bin\s+(?P<amount>{_AMOUNT})\s+(?P<unit>days?|weeks?|months?|years?)\b(?:'?\s+time)?"),
     _read_amount),
    (("from",), _compiled(rf"\b(?P<amount>{_AMOUNT})\s+(?P<unit>days?|weeks?|months?)\s+from\s+"
               rf"(?P<since>now|today|tomorrow|{_WEEKDAY})\b"), _read_amount),
    (("day", "to", "tmrw"), _compiled(r"\b(?:(?:the )?day after tomorrow|today|tonight|tomorrow|tmrw|yesterday)\b"),
     _read_simple),
    (_ON_WEEKDAY,
     _compiled(rf"\b(?:(next|this coming|this|coming|last)\s+)?{_WEEKDAY}\b(\s+(?:after next|next week|week\b))?"),
     _read_weekday),
    (("week", "month"), _compiled(r"\b(?:(next|this|coming)\s+)(weekend)\b|\b(next)\s+(week|month)\b"), _read_week),
    (("the ", "st", "nd", "rd", "th"),
     _compiled(rf"\bthe\s+{_DAY_NUMBER}\b(?!\s+(?:one|option|flight|of\s))"
               r"|\b(\d{1,2})(?:st|nd|rd|th)\b"),
     _read_ordinal),
)  # fmt: skip
"""Date patterns with substrings for a fast check: a match contains at least one of the substrings."""


def find_days(utterance: Utterance, today: date) -> list[Found]:
    """Find dates. A weekday that follows another date cannot be before that date.

    On a Friday, the end of “monday to friday” is not today.
    """
    text = utterance.text
    ordered = sorted(find_dates(utterance, today), key=lambda one: one.start)
    for place, (one, other) in enumerate(pairwise(ordered), start=1):
        begins, ends = one.reading.value, other.reading.value
        if text[other.start : other.end].lower() in WEEKDAYS and begins and ends:
            late = (date.fromisoformat(str(begins)) - date.fromisoformat(str(ends))).days
            if late > 0:
                later = date.fromisoformat(str(ends)) + timedelta(days=late + -late % 7)
                ordered[place] = other._replace(reading=Reading(later.isoformat()))
    return ordered


def count_from(
    mentions: Mapping[str, Mention], flow: FlowSpec, held: Mapping[str, Json]
) -> dict[str, Mention]:
    """Resolve a bare weekday or hour relative to the slot's current value, not to today or midnight (IR-6).

    `held`: current values by slot.
    """
    return {
        name: _count_one(mention, flow.slots.get(name), held.get(name)) for name, mention in mentions.items()
    }


def _count_one(mention: Mention, slot: SlotSpec | None, held: Json) -> Mention:
    if slot is None or not isinstance(held, str) or not isinstance(mention.value, str):
        return mention
    if slot.type == "time":
        return replace(mention, value=nearest_hour(mention.value, mention.text, held))
    weekday = WEEKDAYS.get(mention.text.strip().casefold()) if slot.type == "date" else None
    if weekday is None:
        return mention
    day = date.fromisoformat(held)
    return replace(mention, value=str(day + timedelta((weekday - day.weekday()) % 7)))
