"""Holidays with an unambiguous name, and their dates."""

import re
from datetime import date, timedelta

from dateutil.easter import easter

_EACH_YEAR: dict[str, tuple[int, int]] = {
    r"christmas eve": (12, 24), r"christmas(?: day)?|xmas(?: day)?": (12, 25), r"boxing day": (12, 26),
    r"new year['’]?s? eve": (12, 31), r"new year['’]?s?(?: day)?": (1, 1), r"valentine['’]?s(?: day)?": (2, 14),
    r"may day": (5, 1), r"halloween": (10, 31),
}  # fmt: skip
_FROM_EASTER: dict[str, int] = {
    r"good friday": -2, r"easter monday": 1, r"easter(?: sunday)?": 0, r"whit sunday": 49, r"whit monday": 50,
}  # fmt: skip
HOLIDAY = "|".join([*_EACH_YEAR, *_FROM_EASTER])
"""A pattern for all holidays. Longer names precede their prefixes."""


def find_holiday(words: str, year: int | None, today: date) -> date:
    """Return the date of a holiday that `HOLIDAY` matches, in the given year or from today on."""
    name = words.lower()
    if year is not None:
        return _day_in(year, name)
    return next(day for later in range(2) if (day := _day_in(today.year + later, name)) >= today)


def _day_in(year: int, name: str) -> date:
    days = next((days for words, days in _FROM_EASTER.items() if re.fullmatch(words, name)), None)
    if days is not None:
        return easter(year) + timedelta(days)
    month, day = next(when for words, when in _EACH_YEAR.items() if re.fullmatch(words, name))
    return date(year, month, day)
