"""Resolve phrases such as “a weekend” to calendar days."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

FRIDAY, SATURDAY, SUNDAY = 4, 5, 6
DAY = timedelta(days=1)
_WEEKEND = re.compile(r"\b(?:weekend|city break)\b", re.IGNORECASE)
_THAT_WEEKEND = re.compile(r"\b(?:this|next|coming) weekend\b", re.IGNORECASE)
_LONG = re.compile(r"\blong weekend\b", re.IGNORECASE)
_SOME_TIME = re.compile(
    r"\b(?:(?:in|of|next|this|early|late|mid|around|before|after|during|at)\W+(?:the\W+)?)"
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|month|year"
    r"|spring|summer|autumn|fall|winter|easter|christmas|new year)|\bsome\s?(?:time|day|weekend)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Weekend:
    """The days of departure and return. `assumed`: True if the user named neither."""

    leave: date
    back: date
    assumed: bool


def choose_weekend(request: str, today: date, leave: date | None, words: str) -> Weekend | None:
    """Return the requested weekend, or None if the request mentions no weekend.

    Also return None if `leave` is None and the request names only a vague time, such as “in May”.

    Args:
        request: the user's words, such as “a weekend in Lisbon for two”.
        today: the day of the request.
        leave: the day of departure, or None if unknown.
        words: the user's words for `leave`, such as “next weekend”. If `words` has no letters, `request` is used.
    """
    if _WEEKEND.search(request) is None:
        return None
    nights = timedelta(days=3 if _LONG.search(request) else 2)
    if leave is None:
        if _SOME_TIME.search(request) is not None:
            return None
        friday = _next(FRIDAY, today + DAY)
        return Weekend(friday, friday + nights, assumed=True)
    said = words if re.search("[a-z]", words) else request
    if leave.weekday() in {FRIDAY, SATURDAY} and _THAT_WEEKEND.search(said) is not None:
        friday = _next(SATURDAY, leave) - DAY
        return Weekend(max(friday, today), friday + nights, assumed=False)
    return Weekend(leave, _next(SUNDAY, leave + DAY), assumed=False)


def _next(weekday: int, start: date) -> date:
    return start + timedelta(days=(weekday - start.weekday()) % 7)


def show_span(weekend: Weekend) -> str:
    same = weekend.leave.month == weekend.back.month
    first = f"{weekend.leave:%A} {weekend.leave.day}" + ("" if same else f" {weekend.leave:%B}")
    return f"{first} to {weekend.back:%A} {weekend.back.day} {weekend.back:%B}"
