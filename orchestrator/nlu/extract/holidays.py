"""The holidays that everybody means the same day by, and when each is kept."""

from __future__ import annotations

import re
from datetime import date, timedelta

from dateutil.easter import easter

HOLIDAY = (
    r"christmas(?: day| eve)?|xmas(?: day)?|boxing day|new year['’]?s?(?: eve| day)?|valentine['’]?s(?: day)?"
    r"|may day|halloween|good friday|easter(?: sunday| monday)?|whit (?:sunday|monday)"
)
_EACH_YEAR: dict[str, tuple[int, int]] = {
    r"christmas eve": (12, 24), r"christmas(?: day)?|xmas(?: day)?": (12, 25), r"boxing day": (12, 26),
    r"new years? eve": (12, 31), r"new years?(?: day)?": (1, 1), r"valentines(?: day)?": (2, 14),
    r"may day": (5, 1), r"halloween": (10, 31),
}  # fmt: skip
_FROM_EASTER: dict[str, int] = {
    r"good friday": -2, r"easter(?: sunday)?": 0, r"easter monday": 1, r"whit sunday": 49, r"whit monday": 50,
}  # fmt: skip


def find_holiday(words: str, year: int | None, today: date) -> date:
    """Find the day of a holiday, as `HOLIDAY` matches it: of a year, or else the next one from today on."""
    name = " ".join(re.sub(r"['’]", "", words.lower()).split())
    if year is not None:
        return _day_in(year, name)
    return next(day for later in range(2) if (day := _day_in(today.year + later, name)) >= today)


def _day_in(year: int, name: str) -> date:
    days = next((days for words, days in _FROM_EASTER.items() if re.fullmatch(words, name)), None)
    if days is not None:
        return easter(year) + timedelta(days)
    month, day = next(when for words, when in _EACH_YEAR.items() if re.fullmatch(words, name))
    return date(year, month, day)
