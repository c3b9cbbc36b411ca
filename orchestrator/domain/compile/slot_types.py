"""Compile a domain's slot types: universal types, library types in use, and the domain's own types (FS-4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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
from orchestrator.domain.compile.entities import find_callable
from orchestrator.domain.compile.problems import Path, Problems, SourceFile
from orchestrator.domain.compile.tools import Services
from orchestrator.domain.schema import FlowEntry, SlotTypeEntry
from orchestrator.saying import say
from orchestrator.types import Json

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
    file: SourceFile,
    problems: Problems,
) -> CompiledTypes:
    """Return the universal types, the declared types, and the library types that slots use."""
    own = {name: _compile(name, entry, services, file, problems) for name, entry in entries.items()}
    borrowed = sorted(_types_in_use(flows) & (set(LIBRARY_TYPES) - set(own)))
    if len(own) + len(borrowed) > MAX_OWN_TYPES:
        names = ", ".join([*own, *borrowed])
        message = (
            f"a domain has at most {MAX_OWN_TYPES} slot types beyond the universal ones; this one has {names}"
        )
        problems.add(file, ("slot_types",), message)
    taken = [kind for kind in own.values() if kind is not None][:MAX_OWN_TYPES]
    types = SlotTypes({**UNIVERSAL_TYPES, **{kind.name: kind for kind in (*_library(borrowed), *taken)}})
    patterns = {name: re.compile(entry.pattern) for name, entry in entries.items() if entry.pattern}
    return CompiledTypes(types, patterns)


def _types_in_use(flows: Mapping[str, FlowEntry]) -> set[str]:
    return {slot.type for flow in flows.values() for slot in flow.slots.values() if slot.type is not None}


def _library(names: Iterable[str]) -> list[SlotType]:
    return [LIBRARY_TYPES[name] for name in names]


def _compile(
    name: str, entry: SlotTypeEntry, services: Services, file: SourceFile, problems: Problems
) -> SlotType | None:
    path: Path = ("slot_types", name)
    if name in UNIVERSAL_TYPES:
        problems.add(file, path, "is the name of a universal slot type; choose another")
        return None
    if (entry.pattern is None) == (entry.validator is None):
        if name in LIBRARY_TYPES and entry.pattern is None:
            return LIBRARY_TYPES[name]
        problems.add(file, (*path, "pattern"), "a type has a pattern or a validator, and only one of them")
        return None
    if entry.validator is None:
        return SlotType(name, _by_pattern(entry), entry.description)
    validator = find_callable(entry.validator, services, file, (*path, "validator"), problems)
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
        )  # "the flight that you want" is too long for a name
        name = noun.replace("_", " ") if is_name else spec.label
        return Rejected(say("not_of_pattern", slot=name, wanted="" if is_told else entry.description))

    return check


def _by_callable(validator: Callable[[Json], Json]) -> Callable[[Json, SlotSpec], Verdict]:
    """Wrap a domain's validator, which returns the value to store or raises ValueError with the reason."""

    def check(value: Json, spec: SlotSpec) -> Verdict:  # noqa: ARG001 - the signature of a check
        try:
            return Valid(validator(value))
        except (ValueError, TypeError) as error:
            return Rejected(str(error))

    return check
