"""Ready slot types that a domain may take among its own four: date, time, money, number, boolean."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date

from orchestrator.dialogue.json_values import is_object
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.validation import (
    Rejected,
    SlotType,
    Valid,
    Verdict,
    check_bounded,
    label,
    list_choices,
    show,
)
from orchestrator.types import Json

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::00)?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}")
_YES = frozenset({"yes", "true", "y", "on"})
_NO = frozenset({"no", "false", "n", "off"})


def check_date(value: Json, spec: SlotSpec) -> Verdict:
    """A day of the calendar, `yyyy-mm-dd`."""
    matched = _DATE.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if matched is None:
        return Rejected(f"The {label(spec)} must be a day such as 2026-03-31, and {show(value)} is none.")
    year, month, day = (int(part) for part in matched.groups())
    if year < 1:
        return Rejected(f"{show(value)} does not exist: there is no year 0.")
    if not 1 <= month <= 12:
        return Rejected(f"{show(value)} does not exist: a year has months 1 to 12.")
    days = monthrange(year, month)[1]
    if not 1 <= day <= days:
        name = date(year, month, 1).strftime("%B")
        return Rejected(f"{show(value)} does not exist: {name} {year} has days 1 to {days}.")
    return Valid(matched.group())


def check_time(value: Json, spec: SlotSpec) -> Verdict:
    """A time of day, `HH:MM`, from 00:00 to 23:59."""
    matched = _TIME.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if matched is None:
        return Rejected(f"The {label(spec)} must be a time such as 09:30, and {show(value)} is none.")
    hour, minute = int(matched.group(1)), int(matched.group(2))
    if hour > 23 or minute > 59:
        return Rejected(f"{show(value)} does not exist: times run from 00:00 to 23:59.")
    return Valid(f"{hour:02d}:{minute:02d}")


def _read_money(value: Json, spec: SlotSpec) -> tuple[Json, Json]:
    if is_object(value):
        return value.get("amount"), value.get("currency")
    return value, spec.values[0] if len(spec.values) == 1 else None


def check_money(value: Json, spec: SlotSpec) -> Verdict:
    """`{amount, currency}`; `values` are the possible currencies, and the only one may go unsaid."""
    amount, currency = _read_money(value, spec)
    verdict = check_bounded(amount, spec)
    if isinstance(verdict, Rejected):
        return verdict
    if verdict.value < 0:
        return Rejected(f"The {label(spec)} must not be below zero, and {show(amount)} is.")
    code = currency.strip().upper() if isinstance(currency, str) else ""
    if spec.values and code not in spec.values:
        return Rejected(f"The {label(spec)} needs a currency: {list_choices(spec.values)}.")
    if not _CURRENCY.fullmatch(code):
        return Rejected(f"The {label(spec)} needs a currency of three letters such as EUR.")
    return Valid({"amount": verdict.value, "currency": code})


def check_boolean(value: Json, spec: SlotSpec) -> Verdict:
    """Yes or no."""
    if isinstance(value, bool):
        return Valid(value)
    word = value.strip().casefold() if isinstance(value, str) else ""
    if word in _YES or word in _NO:
        return Valid(word in _YES)
    return Rejected(f"The {label(spec)} must be yes or no, and {show(value)} is neither.")


LIBRARY = (
    SlotType("date", check_date, "a day of the calendar, yyyy-mm-dd"),
    SlotType("time", check_time, "a time of day, HH:MM"),
    SlotType("money", check_money, "an amount with its currency"),
    SlotType("number", check_bounded, "any number, within bounds when they are declared"),
    SlotType("boolean", check_boolean, "yes or no"),
)
