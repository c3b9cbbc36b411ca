"""How values look to people: names instead of codes, dates with their weekday, amounts with their currency."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.domain.registry import Registry
from orchestrator.types import Json, JsonObject, is_list, is_object

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


def show_count(value: Json, noun: str) -> str:
    """A number with its noun: 1 row, 1,200 rows."""
    return f"{value:,} {noun if value == 1 else f'{noun}s'}"


def show_slot(value: Json, slot: SlotSpec | None, registry: Registry, now: float) -> Json:
    """A slot's value as people say it; what has no other form stays as it is."""
    if slot is None or value is None:
        return value
    if slot.entity is not None:
        if isinstance(value, str) or not is_list(value):
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
    if isinstance(value, str | int | float) or not is_list(value):
        return value
    return ", ".join(str(part) for part in value)


LONGEST_TITLE = 5
"""Words; a longer description explains a slot, it does not name it."""


def name_slot(name: str) -> str:
    return name.replace("_", " ")


def name_slot_of(flow: BaseFlow | type[BaseFlow], name: str) -> str:
    """What people call a slot: a short description that begins with "the", else its name."""
    slot = flow.spec.slots.get(name)
    words = slot.description.split(" ") if slot is not None else []
    if words[:1] == ["the"] and len(words) <= LONGEST_TITLE:
        return " ".join(words[1:])
    return name_slot(name)


def name_doing(flow: BaseFlow | type[BaseFlow]) -> str:
    """What the assistant is about with this flow: ``booking a flight``.

    The YAML's option `doing` where there is one, else the description or the name, which begin
    with a verb.
    """
    told = flow.spec.options.get("doing")
    if isinstance(told, str):
        return told
    verb, _, rest = flow.spec.dact.replace("_", " ").partition(" ")
    return f"{_make_gerund(verb)} {_add_article(rest)}".strip()


def name_task(flow: BaseFlow | type[BaseFlow]) -> str:
    """What a user can ask for: the description, else the name."""
    return flow.spec.description.rstrip(".") or flow.spec.dact.replace("_", " ").capitalize()


def name_purpose(flow: BaseFlow | type[BaseFlow]) -> str:
    """What something is needed for: ``to book a flight``."""
    task = name_task(flow)
    return f"to {task[:1].lower()}{task[1:]}"


def list_facts(flow: BaseFlow, found: JsonObject, registry: Registry, now: float) -> list[JsonObject]:
    """Name and shown value of each slot that has a value, by what was found, else in the flow."""
    values = {**flow.values(), **found}
    return [
        {"name": name_slot(name), "value": show_slot(values[name], slot, registry, now)}
        for name, slot in flow.spec.slots.items()
        if values.get(name) is not None
    ]


def _make_gerund(verb: str) -> str:
    """``book`` → ``booking``; good enough for regular verbs, and YAML can say it better."""
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return f"{verb[:-1]}ing"
    if len(verb) == 3 and verb[-1] not in "aeiouwxy" and verb[-2] in "aeiou":
        return f"{verb}{verb[-1]}ing"
    return f"{verb}ing"


def _add_article(noun: str) -> str:
    if not noun or noun.endswith("s"):
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
