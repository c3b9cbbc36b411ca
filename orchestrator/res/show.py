"""How values look to people: names instead of codes, dates with their weekday, amounts with their currency."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.types import Json, JsonObject
from orchestrator.world.registry import Registry

CURRENCY_SIGNS: Mapping[str, str] = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}


def show_date(value: Json, now: float | None = None) -> str:
    """``2026-11-27`` → ``Friday 27 November``; the year only when it is not this one."""
    try:
        day = date.fromisoformat(str(value)[:10])
    except ValueError:
        return str(value)
    text = _spell_day(day)
    if now is None:
        return f"{text} {day.year}"
    today = datetime.fromtimestamp(now, UTC).date()
    if day == today:
        return f"today, {text}"
    if day == today + timedelta(days=1):
        return f"tomorrow, {text}"
    return text if day.year == today.year else f"{text} {day.year}"


@lru_cache(maxsize=1024)
def _spell_day(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B}"


def show_time(value: Json) -> str:
    """``09:40:00`` or an ISO date and time → ``09:40``."""
    text = str(value)
    clock = text.partition("T")[2] or text
    return clock[:5]


def show_money(value: Json, currency: str = "") -> str:
    """An amount, or ``{amount, currency}``, with two decimals unless it is whole."""
    if is_object(value):
        value, currency = value.get("amount"), str(value.get("currency", currency))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    amount = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    sign = CURRENCY_SIGNS.get(currency)
    return f"{sign}{amount}" if sign else f"{amount} {currency}".rstrip()


def show_slot(value: Json, slot: SlotSpec | None, registry: Registry, now: float) -> Json:
    """A slot's value as people say it; what has no other form stays as it is."""
    if slot is None or value is None:
        return value
    if slot.entity is not None:
        if not is_list(value):
            return registry.name(slot.entity, value)
        return ", ".join([registry.name(slot.entity, part) for part in value])
    match slot.type:
        case "date":
            return show_date(value, now)
        case "time":
            return show_time(value)
        case "money":
            return show_money(value)
        case _:
            return _show_plain(value)


def show_slots(flow: BaseFlow, registry: Registry, now: float) -> JsonObject:
    """Every slot of the flow as people say its value; None where it has none."""
    slots = flow.spec.slots
    shown: JsonObject = dict.fromkeys(slots)
    for name, value in flow.values().items():
        if value is not None:
            shown[name] = show_slot(value, slots.get(name), registry, now)
        else:
            shown.setdefault(name)
    return shown


def _show_plain(value: Json) -> Json:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_list(value):
        return ", ".join(str(part) for part in value)
    return value
