"""Parse the travel assistant's answers: offers, questions and rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lab.goals.goal import Seen, Values

_TODAY = date(2026, 11, 20)
_DAY = re.compile(
    r"(\d{1,2}) (January|February|March|April|May|June|July|August|September|October|November|December)"
)
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_FLIGHT = re.compile(
    r"(?P<flight_number>[A-Z0-9]{2} ?\d{1,4}) from [^()]*\((?P<origin>\w{3})\) to [^()]*\((?P<destination>\w{3})\), "
    r"(?P<day>[^–]*?), (?P<departs>\d\d:\d\d)–\d\d:\d\d[^,]*, (?P<cabin>economy|premium|business)"
    r"(?:, (?P<passengers>\d+) passengers)?"
)
_ROW = re.compile(
    r"^\d+\. (?P<airline>.+?) (?P<flight_number>[A-Z0-9]{2} ?\d{1,4}), (?P<departs>\d\d:\d\d)–", re.MULTILINE
)
_BAGS = re.compile(r"(?P<bags>\d+) bags? of .* on booking (?P<ref>[A-Z0-9]{6}).*Shall I add")
_REBOOK = re.compile(
    r"Booking (?P<ref>[A-Z0-9]{6}), [^()]*\((?P<origin>\w{3})\) to [^()]*\((?P<destination>\w{3})\): from .*? to "
    r"(?P<flight_number>[A-Z0-9]{2} ?\d{1,4}), (?P<day>[^–]*?), (?P<departs>\d\d:\d\d)–\d\d:\d\d[^,]*, "
    r"(?P<cabin>economy|premium|business)\. The change"
)
_CANCEL = re.compile(r"Booking (?P<ref>[A-Z0-9]{6}):.*Shall I cancel")
_SHALL = re.compile(r"Shall I [^?]*\?\s*$|Is that (?:right|what you want)\?\s*$", re.MULTILINE)
_QUESTIONS = (
    ("return_date", r"come back\?|return(ing)?\?"),
    ("origin", r"(fly|leave|travel|start) from\?|[Ff]rom where"),
    ("destination", r"(fly|travel) to\?|like to go\?|[Ww]here to\?"),
    ("date", r"[Oo]n which day|[Ww]hich day|[Ww]hat day|[Ww]hen would"),
    ("ref", r"booking reference"),
    ("bags", r"[Hh]ow many bags"),
    ("passengers", r"[Hh]ow many (people|passengers)"),
    ("seat", r"window, middle or aisle seat"),
    ("cabin", r"[Ww]hich cabin"),
)
_DOINGS = {"booking a flight": "book", "searching for flights": "pick", "planning your trip": "trip",
           "canceling a booking": "cancel", "adding bags": "bags", "choosing a seat": "seat"}  # fmt: skip


def read(text: str, actions: Sequence[Mapping[str, Any]]) -> Seen:
    """Parse what an answer asks or offers or, if it does neither, its list of rows."""
    back = re.search(r"[Bb]ack to ([^.]*)\.", text)
    back_to = next((kind for doing, kind in _DOINGS.items() if back and back[1].startswith(doing)), "")

    def seen(kind: str, what: str = "", values: Values | None = None, rows: Sequence[Values] = ()) -> Seen:
        return Seen(kind, what, values or {}, rows, back_to, text, actions)

    if any(action["name"] == "keep_effect" for action in actions):
        return seen("redo", values={"refs": re.findall(r"\(([A-Z0-9]{6})\)", text)})
    if _SHALL.search(text):
        return seen("offer", *_read_offer(text))
    if "would you like to change?" in text:
        return seen("change")
    asked = [paragraph for paragraph in text.split("\n") if "?" in paragraph]
    for slot, pattern in _QUESTIONS:
        if asked and re.search(pattern, asked[-1]):
            return seen("question", slot)
    rows = [row.groupdict() for row in _ROW.finditer(text)]
    return seen("rows", rows=rows) if rows else seen("nothing")


def _read_offer(text: str) -> tuple[str, Values]:
    flights = list(_FLIGHT.finditer(text))
    if flights and "Shall I book" in text:
        values: Values = flights[-1].groupdict()
        return "book", {
            **values,
            "date": read_day(values["day"]),
            "passengers": int(values["passengers"] or 1),
        }
    change = _REBOOK.search(text)
    if change:
        return "rebook", {**change.groupdict(), "date": read_day(change["day"])}
    for kind, pattern in (("bags", _BAGS), ("cancel", _CANCEL)):
        found = pattern.search(text)
        if found:
            values = found.groupdict()
            return kind, {slot: int(value) if slot == "bags" else value for slot, value in values.items()}
    return "something else", {"text": text[-80:]}


def read_day(text: str) -> str:
    """Return the next date of the first day in the text, as ISO 8601, or the text itself if it contains no day."""
    found = _DAY.search(text)
    if found is None:
        return text
    month = _MONTHS.index(found[2]) + 1
    this_year = date(_TODAY.year, month, int(found[1]))
    return (this_year if this_year >= _TODAY else this_year.replace(year=_TODAY.year + 1)).isoformat()


@cache
def airline_names() -> Mapping[str, Sequence[str]]:
    """Return airline codes by country, from the domain's configuration."""
    path = Path(__file__).resolve().parents[3] / "domains" / "travel" / "domain.yaml"
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["services"]["Flights"]["airlines"]
