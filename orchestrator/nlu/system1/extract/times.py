"""Search for times of day: "7:30 pm", "19:30", "half past six", "noon". Values have the form HH:MM."""

import re
from collections.abc import Callable

from orchestrator.nlu.system1.extract.found import TIME, Found, Reading
from orchestrator.nlu.system1.extract.numbers import UNITS
from orchestrator.nlu.text import Utterance
from orchestrator.saying import say

_HOURS = {word: value for word, value in UNITS.items() if 1 <= value <= 12}
_MINUTES = {"quarter": 15, "half": 30, "ten": 10, "twenty": 20, "five": 5, "twenty-five": 25}
_PART = r"(?:\s+(?:o'?clock|sharp))?(?:\s+(?:in the|at|this)\s+(morning|afternoon|evening|night))?"
_HOUR = r"(\d{1,2}|" + "|".join(_HOURS) + r")"
_MERIDIEM = r"([ap])(?:\.\s?m\.|\.?\s?m\b)"

_CLOCK = re.compile(rf"\b(\d{{1,2}})[:.h](\d{{2}})(?!\d|[./]\d)(?:\s?{_MERIDIEM})?{_PART}", re.IGNORECASE)
_SPOKEN = re.compile(
    rf"\b(quarter|half|twenty-five|twenty|ten|five|\d{{1,2}})(?:\s+minutes)?\s+(past|to|after|before)\s+{_HOUR}\b"
    rf"(?:\s?{_MERIDIEM})?{_PART}",
    re.IGNORECASE,
)
_ENDING = (
    r"(?=\s*(?:$|[,;!?]|\.(?!\d)|(?:and|but|for|if|instead|next|on|please|pls|then|today|tomorrow"
    r"|tonight|with|\w+day)\b))"
)
_HOURLY = re.compile(
    rf"\b(?:{_HOUR}(?:\s+(thirty|fifteen|forty[- ]five))?(?:\s?{_MERIDIEM}|(?:\s+o'?clock|\s+sharp)?"
    rf"\s+(?:in the|at|this)\s+(morning|afternoon|evening|night)\b|\s+o'?clock\b)|at\s+{_HOUR}{_ENDING})",
    re.IGNORECASE,
)
"""An hour with its part of the day, or after “at”: “7 pm”, “five in the evening”, “tuesday at 9”."""
_PART_FIRST = re.compile(
    rf"\b(morning|afternoon|evening|night)\s+(?:at\s+)?{_HOUR}(?:[:. ](\d{{2}}|thirty|fifteen|forty[- ]five))?"
    rf"(?:\s+o'?clock)?(?![\w:])",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(noon|midday|midnight)\b", re.IGNORECASE)
_VALUE = re.compile(r"\d\d:\d\d")
_WORDED_MINUTES = {"thirty": 30, "fifteen": 15, "forty five": 45, "forty-five": 45}


def find_times(utterance: Utterance) -> list[Found]:
    """Find times of day, including invalid times such as "25:70"."""
    text = utterance.text
    found: list[Found] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            start, end = match.span()
            reading = read(match)
            if reading is not None and not any(item.start < end and start < item.end for item in found):
                found.append(Found(start, end, TIME, reading))
    return found


_SAID_PART = re.compile(rf"{_MERIDIEM}|morning|afternoon|evening|night|noon|midday", re.IGNORECASE)


def in_part_of_day(value: str, text: str, part: str | None) -> str:
    """Shift an hour to `part`, the slot's part of the day, if `text` doesn't specify a part.

    Without a part, spoken hours before six are in the afternoon: “half past three”.
    """
    hour = int(value[:2])
    if part is None and 1 <= hour < 6 and _CLOCK.search(text) is None:
        part = "afternoon"
    if part is None or not 1 <= hour <= 12 or value[:1] == "0" == text[:1] or _SAID_PART.search(text):
        return value
    return f"{_hour_of_part(hour, part):02d}{value[2:]}"


def nearest_hour(value: str, text: str, held: str) -> str:
    """Return `value`, in the half of the day nearer to `held` if `text` doesn't specify a.m. or p.m.

    Return a value that isn't a time unchanged, because the user can reject any value: “not Anna”.
    """
    if _VALUE.fullmatch(value) is None:
        return value
    hour = int(value[:2])
    if not 1 <= hour <= 12 or ":" in text or text[:1] == "0" or _SAID_PART.search(text):
        return value
    now = int(held[:2]) * 60 + int(held[3:5])
    hours = (hour % 12, hour % 12 + 12)
    nearest = min(hours, key=lambda one: abs(one * 60 + int(value[3:5]) - now))
    return f"{nearest:02d}{value[2:]}"


def _read(
    match: re.Match[str], hour: int, minute: int = 0, meridiem: str | None = None, part: str | None = None
) -> Reading:
    if not 0 <= minute <= 59 or hour > 24 or (meridiem and not 1 <= hour <= 12) or (hour == 24 and minute):
        return Reading(invalid=say("not_time_of_day", text=match.group().strip()))
    if meridiem:
        hour = hour % 12 + (12 if meridiem.lower() == "p" else 0)
    elif part and hour <= 12:
        hour = _hour_of_part(hour, part.lower())
    return Reading(f"{hour % 24:02d}:{minute:02d}")


def _hour_of_part(hour: int, part: str) -> int:
    if part == "morning":
        return hour % 12
    if part == "night" and (hour == 12 or hour < 5):
        return hour % 12
    return hour % 12 + 12


def _hour(text: str) -> int:
    return int(text) if text.isdigit() else _HOURS[text.lower()]


def _minutes(text: str | None) -> int:
    if text is None:
        return 0
    return int(text) if text.isdigit() else _WORDED_MINUTES[text.lower()]


def _read_clock(match: re.Match[str]) -> Reading | None:
    hour, minute, meridiem, part = match.groups()
    if match.group(0)[len(hour)] == "." and meridiem is None and part is None:
        return None  # "7.30" alone is a number
    return _read(match, _hour(hour), int(minute), meridiem, part)


def _read_spoken(match: re.Match[str]) -> Reading:
    said, direction, named, meridiem, part = match.groups()
    minutes = int(said) if said.isdigit() else _MINUTES[said.lower()]
    hour = _hour(named)
    if direction.lower() not in {"past", "after"}:
        hour, minutes = (hour - 1) % 24 if hour != 1 else 12, 60 - minutes
    return _read(match, hour, minutes, meridiem, part)


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Reading | None]], ...] = (
    (_CLOCK, _read_clock),
    (_SPOKEN, _read_spoken),
    (_HOURLY, lambda m: _read(m, _hour(m[1] or m[5]), _minutes(m[2]), meridiem=m[3], part=m[4])),
    (_PART_FIRST, lambda m: _read(m, _hour(m[2]), _minutes(m[3]), part=m[1])),
    (_NAMED, lambda m: _read(m, 0 if m[1].lower() == "midnight" else 12)),
)
