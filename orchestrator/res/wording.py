"""Display forms of values: names instead of codes, dates with weekdays, amounts with currencies.

Dates, times, numbers and amounts follow the user's locale if it is known (`forms_in_use`, RT-29).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.domain.locales import ENGLISH, forms_in_use
from orchestrator.domain.registry import Registry
from orchestrator.res.languages import load_sayings, word
from orchestrator.types import Json, JsonObject, is_list, is_object

LONGEST_LABEL = 4
"""Maximum length of a description that serves as the slot's name, in words, without the article."""
CURRENCY_SIGNS: Mapping[str, str] = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}


def show_date(value: Json, now: float | None = None) -> str:
    """Format ``2026-11-27`` as ``Friday 27 November``, with “today”, “tomorrow”, or a year other than this year.

    `now`: Unix seconds, shifted to the user's time zone. Without `now`, always add the year. Return text that is
    not a date unchanged.
    """
    try:
        day = date.fromisoformat(str(value)[:10])
    except ValueError:
        return str(value)
    today = None if now is None else datetime.fromtimestamp(now, UTC).date()
    near = {} if today is None else {today: "today", today + timedelta(days=1): "tomorrow"}
    with_year = day not in near and (today is None or day.year != today.year)
    forms = forms_in_use.get()
    text = _spell_day(day, year=with_year) if forms is None else forms.day(day, year=with_year)
    if day not in near:
        return text
    return f"{load_sayings(ENGLISH if forms is None else forms.language)[near[day]]}, {text}"


def show_month(value: Json) -> str:
    """Format a month, 1 to 12, as its name."""
    if not isinstance(value, int) or not 1 <= value <= 12:
        return str(value)
    forms = forms_in_use.get()
    return f"{date(2000, value, 1):%B}" if forms is None else forms.month(value)


@lru_cache(maxsize=1024)
def _spell_day(day: date, *, year: bool) -> str:
    return f"{day:%A} {day.day} {day:%B}{f' {day.year}' if year else ''}"


def show_time(value: Json) -> str:
    """Format ``09:40:00`` or an ISO date and time as ``09:40``."""
    text = str(value)
    clock = (text.partition("T")[2] or text)[:5]
    forms = forms_in_use.get()
    if forms is None:
        return clock
    try:
        return forms.time(time.fromisoformat(clock))
    except ValueError:
        return clock


def show_money(value: Json, currency: str = "") -> str:
    """Format an amount, or ``{amount, currency}``, with two decimals unless it is an integer."""
    if is_object(value):
        value, currency = value.get("amount"), str(value.get("currency", currency))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    forms = forms_in_use.get()
    if forms is not None:
        return forms.money(value, currency)
    amount = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    sign = CURRENCY_SIGNS.get(currency)
    return f"{sign}{amount}" if sign else f"{amount} {currency}".rstrip()


def show_number(value: Json) -> str:
    forms = forms_in_use.get()
    return f"{value:,}" if forms is None or not isinstance(value, int | float) else forms.number(value)


def show_count(value: Json, noun: str, plural: str = "") -> str:
    """Format a number with its noun, such as “1 row” or “1,200 rows”.

    Default plural: the noun with an “s”.
    """
    return f"{show_number(value)} {noun if value == 1 else plural or f'{noun}s'}"


MOST_CHOICES = 8
"""Maximum number of choices that a sentence lists."""


def join_choices(values: list[str], conjunction: str) -> str:
    """Join choices, as in “a, b or c”. Omit choices after `MOST_CHOICES`."""
    if len(values) > MOST_CHOICES:
        return ", ".join(values[:MOST_CHOICES]) + " …"
    return (
        f" {conjunction} ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else "".join(values)
    )


def show_truth(value: bool) -> str:
    return word("true" if value else "false")


def show_slot(value: Json, slot: SlotSpec | None, registry: Registry, now: float) -> Json:
    """Return the display form of a slot's value, or the value itself if `slot` is None."""
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
    """Return the display values of all slots. Empty slots are None."""
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
        return show_truth(value)
    if isinstance(value, str | int | float) or not is_list(value):
        return value
    return ", ".join(str(part) for part in value)


def name_slot(name: str) -> str:
    return name.replace("_", " ")


def name_slot_of(flow: BaseFlow | type[BaseFlow], name: str) -> str:
    """Return a slot's display name: the noun of a short description, such as “day” for “the day”, or its label."""
    slot = flow.spec.slots.get(name)
    if slot is None:
        return name_slot(name)
    article, _, noun = slot.description.partition(" ")
    is_name = not slot.own_label and article == "the" and noun.count(" ") < LONGEST_LABEL
    return noun if is_name else slot.label


def label_slot(flow: BaseFlow | type[BaseFlow], name: str) -> str:
    """Return a slot's label, or `name` in words if the flow has no such slot."""
    slot = flow.spec.slots.get(name)
    return name_slot(name) if slot is None else slot.label


def name_doing(flow: BaseFlow | type[BaseFlow]) -> str:
    """Return the flow's activity, such as ``booking a flight``.

    The flow's option `doing` sets the phrase. Default: the flow's name as a gerund in English, or its
    description in other languages.
    """
    told = flow.spec.options.get("doing")
    if isinstance(told, str):
        return told
    if flow.spec.language != ENGLISH:
        return name_task(flow)
    verb, _, rest = flow.spec.dact.replace("_", " ").partition(" ")
    return f"{_make_gerund(verb)} {_add_article(rest)}".strip()


def name_task(flow: BaseFlow | type[BaseFlow]) -> str:
    """Return the flow's description, or its name if it has no description."""
    return flow.spec.description.rstrip(".") or flow.spec.dact.replace("_", " ").capitalize()


def name_purpose(flow: BaseFlow | type[BaseFlow]) -> str:
    """Return the flow's purpose, such as ``to book a flight``, or its description in other languages."""
    task = name_task(flow)
    if flow.spec.language != ENGLISH:
        return task
    return f"to {task[:1].lower()}{task[1:]}"


def list_facts(flow: BaseFlow, found: JsonObject, registry: Registry, now: float) -> list[JsonObject]:
    """Return the label and display value of each filled slot. Findings override the flow's values."""
    values = {**flow.values(), **found}
    return [
        {"name": slot.label, "value": _show_number(show_slot(values[name], slot, registry, now))}
        for name, slot in flow.spec.slots.items()
        if values.get(name) is not None
    ]


def _show_number(value: Json) -> Json:
    """Format a float in the user's locale. Integers stay unchanged, because they can be years or IDs."""
    forms = forms_in_use.get()
    return forms.number(value) if forms is not None and isinstance(value, float) else value


def _make_gerund(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return f"{verb[:-1]}ing"
    if len(verb) == 3 and verb[-1] not in "aeiouwxy" and verb[-2] in "aeiou":
        return f"{verb}{verb[-1]}ing"
    return f"{verb}ing"


def _add_article(noun: str) -> str:
    if not noun or noun.endswith("s"):
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


LONGEST_SHOWN = 1000
"""Maximum length of a displayed argument, in characters."""


def list_arguments(
    flow: BaseFlow, arguments: JsonObject, found: Collection[str], registry: Registry, now: float
) -> list[JsonObject]:
    """Return each argument's label and display value, and whether its name is in `found`.

    `found`: the arguments whose text comes from a tool result or a document.
    """
    inputs = {name: slot for use in flow.spec.tools for name, slot in use.slot_mapping.items()}
    return [
        {
            "name": label_slot(flow, name),
            "value": _cut(show_argument(show_slot(value, flow.slot(inputs.get(name, name)), registry, now))),
            "found": name in found,
        }
        for name, value in arguments.items()
        if value is not None
    ]


def list_unshown(
    flow: BaseFlow, arguments: JsonObject, shown: Iterable[JsonObject], text: str
) -> list[JsonObject]:
    """Return the arguments in `shown` that are neither in the text nor values of the flow's slots."""
    chosen = [value for value in flow.values().values() if value is not None]
    unseen = {
        label_slot(flow, name)
        for name, value in arguments.items()
        if value is not None and (is_list(value) or is_object(value) or value not in chosen)
    }
    words = text.lower()
    return [one for one in shown if one["name"] in unseen and not _is_in(str(one["value"]).lower(), words)]


def _is_in(value: str, text: str) -> bool:
    """Return whether a text contains a value as whole words: “14:00” doesn't contain 4."""
    at = text.find(value)
    while at >= 0 and (text[max(0, at - 1) : at].isalnum() or text[at + len(value) :][:1].isalnum()):
        at = text.find(value, at + 1)
    return at >= 0


def show_argument(value: Json) -> str:
    """Return a value on one line: lists with commas, objects as ``name: value``."""
    if is_object(value):
        return "; ".join(f"{name_slot(name)}: {show_argument(part)}" for name, part in value.items())
    if is_list(value):
        return ", ".join(show_argument(part) for part in value)
    if isinstance(value, bool):
        return show_truth(value)
    return str(value)


def _cut(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]} … {word('cut').format(len(text))}"
