"""Display of a call's arguments, with marks on those from a tool result or a document."""

from collections.abc import Collection, Iterable

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.domain.registry import Registry
from orchestrator.res.languages import word
from orchestrator.res.wording import label_slot, name_slot, show_slot, show_truth
from orchestrator.types import Json, JsonObject, is_list, is_object

LONGEST_SHOWN = 1000
"""Maximum length of a displayed argument, in characters."""


def list_arguments(
    flow: BaseFlow, arguments: JsonObject, found: Collection[str], registry: Registry, now: float
) -> list[JsonObject]:
    """Return each argument's name and display value.

    `found`: the arguments from a tool result or a document.
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
    """Return the displayed arguments that are neither in the text nor slot values."""
    chosen = [value for value in flow.values().values() if value is not None]
    unseen = {
        label_slot(flow, name)
        for name, value in arguments.items()
        if value is not None and (is_list(value) or is_object(value) or value not in chosen)
    }
    return [one for one in shown if one["name"] in unseen and str(one["value"]) not in text]


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
