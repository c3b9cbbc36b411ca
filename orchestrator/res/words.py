"""How flows, slots and options are called in an answer."""

from __future__ import annotations

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.res.show import show_slot
from orchestrator.types import JsonObject
from orchestrator.world.registry import Registry

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


def list_facts(flow: BaseFlow, values: JsonObject, registry: Registry, now: float) -> list[JsonObject]:
    """Name and shown value of each value that has a slot in the flow."""
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
