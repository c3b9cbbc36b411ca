"""Compile an ontology's entities, answers and slot types (FS-4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from orchestrator.dialogue.slots import (
    LIBRARY_TYPES,
    UNIVERSAL_TYPES,
    Rejected,
    SlotType,
    SlotTypes,
    Valid,
    Verdict,
)
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.domain.compile.problems import Place, suggest
from orchestrator.domain.compile.tools import Services
from orchestrator.domain.model import Answer, Entity, EntityValue
from orchestrator.domain.schema import AnswerEntry, EntityEntry, FlowEntry, SlotTypeEntry
from orchestrator.saying import say
from orchestrator.types import Json


def compile_entities(
    entries: Mapping[str, EntityEntry], services: Services, place: Place
) -> dict[str, Entity]:
    return {name: _compile_entity(name, entry, services, place.at(name)) for name, entry in entries.items()}


def compile_answers(entries: Mapping[str, AnswerEntry], place: Place) -> tuple[Answer, ...]:
    for name, entry in entries.items():
        if not entry.text.strip():
            place.add("is missing", name, "text")
        if not entry.examples:
            place.add("is missing: add questions that it answers", name, "examples")
    return tuple(
        Answer(name, entry.examples, entry.text.strip(), entry.digression) for name, entry in entries.items()
    )


def find_callable(name: str, services: Services, place: Place) -> Any | None:
    """Return the callable `name` of services.py. If there is none, report a problem and return None."""
    found = services.get(name)
    if callable(found):
        return found
    known = [one for one, value in services.items() if callable(value)]
    place.add(f"services.py has no {name!r}{suggest(name, known)}")
    return None


def _compile_entity(name: str, entry: EntityEntry, services: Services, place: Place) -> Entity:
    if entry.provider is None:
        if not entry.values:
            place.add("has neither values nor a provider")
        values = [
            EntityValue(canonical, value.name or canonical, value.aliases, value.metadata)
            for canonical, value in entry.values.items()
        ]
        return Entity(name, tuple(values), entry.learned_from)
    place = place.at("provider")
    if entry.values:
        place.add("an entity has values or a provider, not both")
    provider = find_callable(entry.provider, services, place)
    provided = () if provider is None else _provide(provider, entry, place)
    return Entity(name, provided, entry.learned_from)


def _provide(provider: Any, entry: EntityEntry, place: Place) -> tuple[EntityValue, ...]:
    """Return the values from an entity's provider. Report any exception and any invalid result as a problem."""
    try:
        values = list(cast("Iterable[Any]", provider(**entry.options)))
    except Exception as error:  # noqa: BLE001 - a domain's code can raise anything
        place.add(f"{entry.provider} fails: {type(error).__name__}: {error}")
        return ()
    if not values or not all(isinstance(value, EntityValue) for value in values):
        place.add(f"{entry.provider} must return at least one EntityValue record")
        return ()
    return tuple(values)


MAX_OWN_TYPES = 4


@dataclass(frozen=True, slots=True)
class CompiledTypes:
    """A domain's slot types. `patterns`: patterns of the domain's own types, by name."""

    types: SlotTypes
    patterns: Mapping[str, re.Pattern[str]]


def compile_slot_types(
    entries: Mapping[str, SlotTypeEntry],
    flows: Mapping[str, FlowEntry],
    services: Services,
    place: Place,
) -> CompiledTypes:
    """Return the universal types, the declared types, and the library types that slots use."""
    own = {name: _compile(name, entry, services, place.at(name)) for name, entry in entries.items()}
    used = {slot.type for flow in flows.values() for slot in flow.slots.values()}
    borrowed = [name for name in sorted(LIBRARY_TYPES) if name in used and name not in own]
    if len(own) + len(borrowed) > MAX_OWN_TYPES:
        names = ", ".join([*own, *borrowed])
        place.add(
            f"a domain can have at most {MAX_OWN_TYPES} slot types besides the universal ones; it has {names}"
        )
    taken = [kind for kind in own.values() if kind is not None][:MAX_OWN_TYPES]
    library = [LIBRARY_TYPES[name] for name in borrowed]
    types = SlotTypes({**UNIVERSAL_TYPES, **{kind.name: kind for kind in (*library, *taken)}})
    patterns = {name: re.compile(entry.pattern) for name, entry in entries.items() if entry.pattern}
    return CompiledTypes(types, patterns)


def _compile(name: str, entry: SlotTypeEntry, services: Services, place: Place) -> SlotType | None:
    if name in UNIVERSAL_TYPES:
        place.add("is the name of a universal slot type; choose another")
        return None
    if (entry.pattern is None) == (entry.validator is None):
        if name in LIBRARY_TYPES and entry.pattern is None:
            return LIBRARY_TYPES[name]
        place.add("a type has a pattern or a validator, not both", "pattern")
        return None
    if entry.validator is None:
        return SlotType(name, _by_pattern(entry), entry.description)
    validator = find_callable(entry.validator, services, place.at("validator"))
    return None if validator is None else SlotType(name, _by_callable(validator), entry.description)


def _by_pattern(entry: SlotTypeEntry) -> Callable[[Json, SlotSpec], Verdict]:
    pattern = re.compile(entry.pattern or "")

    def check(value: Json, spec: SlotSpec) -> Verdict:
        text = " ".join(value.split()) if isinstance(value, str) else ""
        text = text.upper() if entry.uppercase else text
        if text and pattern.fullmatch(text):
            return Valid(text)
        is_told = entry.description in spec.prompt  # the prompt already describes the pattern
        article, _, noun = spec.description.partition(" ")
        is_name = (
            article == "the" and noun.count(" ") <= 1
        )  # "the flight that you want" is too long to be a name
        name = noun.replace("_", " ") if is_name else spec.label
        return Rejected(say("not_of_pattern", slot=name, wanted="" if is_told else entry.description))

    return check


def _by_callable(validator: Callable[[Json], Json]) -> Callable[[Json, SlotSpec], Verdict]:
    """Wrap a domain's validator as a check. A validator returns the value to store, or raises ValueError."""

    def check(value: Json, spec: SlotSpec) -> Verdict:  # noqa: ARG001 - the signature of a check
        try:
            return Valid(validator(value))
        except (ValueError, TypeError) as error:
            return Rejected(str(error))

    return check
