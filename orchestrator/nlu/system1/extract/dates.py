"""Search for dates, absolute and relative to the day of the turn. Values have the form yyyy-mm-dd.

Fast patterns find most dates. Only answers to a question about a date also use the slow library dateparser.
"""

import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import lru_cache

from dateutil.relativedelta import relativedelta

from orchestrator.nlu.system1.extract.found import DATE, Candidate, Found, Reading
from orchestrator.nlu.system1.extract.holidays import HOLIDAY, find_holiday
from orchestrator.nlu.system1.extract.numbers import UNITS
from orchestrator.nlu.text import Utterance, word_set
from orchestrator.saying import say

_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTHS: dict[str, int] = {
    **{name: index for index, name in enumerate(_MONTH_NAMES, 1)},
    **{name[:3]: index for index, name in enumerate(_MONTH_NAMES, 1)},
    "sept": 9,
}
_WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS: dict[str, int] = {
    **{name: index for index, name in enumerate(_WEEKDAY_NAMES)},
    **{name[:3]: index for index, name in enumerate(_WEEKDAY_NAMES)},
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
_SIMPLE_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14,
    "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19,
    "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
ORDINALS = {
    **_SIMPLE_ORDINALS,
    **{
        f"twenty{sep}{word}": 20 + _SIMPLE_ORDINALS[word]
        for word in list(_SIMPLE_ORDINALS)[:9]
        for sep in "- "
    },
    **{f"thirty{sep}first": 31 for sep in "- "},
}
_BESIDE_PLACES = word_set("the please . ! , i want take i'd like yes no then")
_AMOUNTS = {word: value for word, value in UNITS.items() if value} | {
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "a few": 3,
}


def _any(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


MONTH = rf"({_any(_MONTHS)})\b\.?"
DAY = rf"(\d{{1,2}}(?!\d)|{_any(ORDINALS)})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(\d{4})\b)?"
_WEEKDAY = rf"({_any(WEEKDAYS)})"
_AMOUNT = rf"(\d{{1,3}}|{_any(_AMOUNTS)})"
_DAY_NUMBER = rf"(\d{{1,2}}(?=st|nd|rd|th)|{_any(ORDINALS)})(?:st|nd|rd|th)?"
_OF_THIS_MONTH = r"\s+of\s+(?:this|the)\s+month\b"
_PREFIX = rf"(?:{_WEEKDAY}\b,?\s+(?:the\s+)?)?"

_OF_HOLIDAY = (
    rf"(?:\b(?P<amount>{_AMOUNT})\s+(?P<unit>days?|weeks?)\s+(?P<side>before|after)\s+"
    rf"|\b(?:the\s+)?day\s+(?P<by>before|after)\s+)?\b(?P<holiday>{HOLIDAY})(?!\w)"
    r"(?:,?\s+(?:of\s+|in\s+)?(?P<year>[12]\d{3})\b)?"
)
_FROM_THEN = (
    rf"\b(?P<amount>{_AMOUNT})\s+(?P<unit>days?|weeks?)\s+from\s+(?:(?P<tomorrow>tomorrow)|{_WEEKDAY})\b"
)


def find_dates(utterance: Utterance, today: date) -> list[Found]:
    """Find dates, including invalid dates such as "February 30"."""
    return list(_find(utterance.text, today))


def names_place(utterance: Utterance, candidate: Candidate) -> bool:
    """Return whether a day is only an ordinal, such as “the first”, which may also be a list position."""
    words = utterance.words
    is_alone = all(word in _BESIDE_PLACES for word in (*words[: candidate.first], *words[candidate.last :]))
    return candidate.kind == DATE and is_alone and candidate.text.lower().removeprefix("the ") in ORDINALS


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
    """Parse an answer with dateparser, which is slow, if no pattern matches."""
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
    try:
        return Reading(date(year, month, day).isoformat())
    except ValueError:
        return Reading(invalid=say("no_day_in_month", day=day, month=month, year=year))


def _coming(month: int, day: int, today: date) -> Reading:
    """Find the next such day from today on. For February 29, find the next leap year."""
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
    """Parse 3/4 or 3.4.2026. If day and month are ambiguous, both dates are candidates."""
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


def _read_named(month: str, day: str, year: str | None, today: date) -> Reading:
    number = int(day) if day.isdigit() else ORDINALS[day.lower()]
    month_number = _MONTHS[month.lower()]
    return _exact(int(year), month_number, number) if year else _coming(month_number, number, today)


def _read_month_first(match: re.Match[str], today: date) -> Reading:
    return _read_named(match.group(2), match.group(3), match.group(4), today)


def _read_day_first(match: re.Match[str], today: date) -> Reading:
    return _read_named(match.group(3), match.group(2), match.group(4), today)


def _read_simple(match: re.Match[str], today: date) -> Reading:
    text = match.group().lower()
    if "after" in text:
        return _after(today, 2)
    if "yesterday" in text:
        return _after(today, -1)
    return _after(today, 1 if "tom" in text or "tm" in text else 0)


def _read_amount(match: re.Match[str], today: date) -> Reading | None:
    amount_text = match.group("amount").lower()
    amount = int(amount_text) if amount_text.isdigit() else _AMOUNTS[amount_text]
    unit = match.group("unit").lower()
    if unit.startswith("month"):
        return _add_months(today, amount)
    if unit.startswith("year"):
        return _add_months(today, 12 * amount)
    return _after(today, amount * (7 if unit.startswith("week") else 1))


def _read_weekday(match: re.Match[str], today: date) -> Reading:
    """Parse a weekday: "friday" is the next Friday, "next friday" is the Friday of the following week."""
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


def _read_day_of_week(match: re.Match[str], today: date) -> Reading:
    """Parse "next week on tuesday"."""
    return _after(today, WEEKDAYS[match.group(1).lower()] - today.weekday() + 7)


def _read_week(match: re.Match[str], today: date) -> Reading:
    which = (match.group(1) or match.group(3)).lower()
    unit = (match.group(2) or match.group(4)).lower()
    if unit == "weekend":
        return _after(today, 5 - today.weekday() + 7 if which == "next" else (5 - today.weekday()) % 7)
    if unit == "week":
        return _one_of([today + timedelta(days=7 - today.weekday() + ahead) for ahead in range(7)], today)
    return _add_months(today.replace(day=1), 1)


def _read_ordinal(match: re.Match[str], today: date) -> Reading:
    """Parse "the 3rd" as the next day with this number."""
    text = (match.group(1) or match.group(2) or match.group(3)).lower()
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


def _read_holiday(match: re.Match[str], today: date) -> Reading:
    """Parse a holiday, or a day counted from a holiday."""
    year = match["year"]
    day = find_holiday(match["holiday"], int(year) if year else None, today)
    side = match["side"] or match["by"]
    if side is None:
        return Reading(day.isoformat())
    amount = _amount_of(match) if match["side"] else 1
    return _after(day, -amount if side.lower() == "before" else amount)


def _read_from(match: re.Match[str], today: date) -> Reading:
    """Parse "a week from tomorrow" or "two weeks from friday"."""
    weekday = match.group(match.re.groups)
    ahead = 1 if match["tomorrow"] else (WEEKDAYS[weekday.lower()] - today.weekday()) % 7
    return _after(today, ahead + _amount_of(match))


def _amount_of(match: re.Match[str]) -> int:
    """Parse "two weeks" as a number of days."""
    text = match["amount"].lower()
    amount = int(text) if text.isdigit() else _AMOUNTS[text]
    return amount * (7 if match["unit"].lower().startswith("week") else 1)


def _read_first_of(match: re.Match[str], today: date) -> Reading:
    """Parse "the first weekend of December" as several days, and "the first Monday of December" as one day.

    The first week of a month is its first seven days.
    """
    *_, month, year = match.groups()
    number = _MONTHS[month.lower()]
    begins = date(int(year) if year else today.year + (number < today.month), number, 1)
    what = match["what"].lower()
    weekday = 5 if what == "weekend" else WEEKDAYS.get(what, begins.weekday())
    first = begins + timedelta(days=(weekday - begins.weekday()) % 7)
    days = {"weekend": 2, "week": 7}.get(what, 1)
    return _one_of([first + timedelta(days=ahead) for ahead in range(days)], today)


def _one_of(days: list[date], today: date) -> Reading:
    """Return the days from today on, as candidates if there are several."""
    values = tuple(day.isoformat() for day in days if day >= today)
    return Reading(values[0]) if len(values) == 1 else Reading(candidates=values)


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
    (("mas", "day", "year", "valen", "hallo", "easter"), _compiled(_OF_HOLIDAY), _read_holiday),
    (("from",), _compiled(_FROM_THEN), _read_from),
    (("first",), _compiled(rf"\bfirst\s+(?P<what>weekend|week|{_any(WEEKDAYS)})\s+(?:of|in)\s+{MONTH}(?!\w){_YEAR}"),
     _read_first_of),
    (_IN_MONTH, _compiled(rf"{_PREFIX}\b{MONTH}\s+(?:the\s+)?{DAY}(?!\w|:\d|\s?[ap]\.?m){_YEAR}"), _read_month_first),
    (_IN_MONTH, _compiled(rf"{_PREFIX}\b{DAY}(?:\s+of)?\s+{MONTH}(?!\w){_YEAR}"), _read_day_first),
    (("in ",), _compiled(rf"\bin\s+(?P<amount>{_AMOUNT})\s+(?P<unit>days?|weeks?|months?|years?)\b(?:'?\s+time)?"),
     _read_amount),
    (("from",), _compiled(rf"\b(?P<amount>{_AMOUNT})\s+(?P<unit>days?|weeks?|months?)\s+from\s+(?:now|today)\b"),
     _read_amount),
    (("day", "to", "tmrw"), _compiled(r"\b(?:(?:the )?day after tomorrow|today|tonight|tomorrow|tmrw|yesterday)\b"),
     _read_simple),
    (("next week",), _compiled(rf"\bnext\s+week,?\s+(?:on\s+)?{_WEEKDAY}\b"), _read_day_of_week),
    (_ON_WEEKDAY,
     _compiled(rf"\b(?:(next|this coming|this|coming|last)\s+)?{_WEEKDAY}\b(\s+(?:after next|next week|week\b))?"),
     _read_weekday),
    (("week", "month"), _compiled(r"\b(?:(next|this|coming)\s+)(weekend)\b|\b(next)\s+(week|month)\b"), _read_week),
    (("the ", "st", "nd", "rd", "th"),
     _compiled(rf"\b{_DAY_NUMBER}{_OF_THIS_MONTH}|\bthe\s+{_DAY_NUMBER}\b(?!\s+(?:one|option|flight|of\s))"
               r"|\b(\d{1,2})(?:st|nd|rd|th)\b"),
     _read_ordinal),
)  # fmt: skip
"""Date patterns with substrings for a fast check: a match contains at least one of the substrings."""
