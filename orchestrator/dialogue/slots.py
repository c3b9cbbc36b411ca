"""Slots: the values a flow holds, where they came from, and which types judge them (FS-3, FS-4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.dialogue.json_values import copy_json
from orchestrator.dialogue.library import LIBRARY
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.universal import UNIVERSAL
from orchestrator.dialogue.validation import Rejected, SlotType, Valid, Validator, Verdict, is_bounded_json
from orchestrator.errors import ConfigurationError, Problem
from orchestrator.types import Json, JsonObject, TurnId

__all__ = [
    "LIBRARY_TYPES",
    "SLOT_TYPES",
    "UNIVERSAL_TYPES",
    "Rejected",
    "SlotSource",
    "SlotType",
    "SlotTypes",
    "SlotValue",
    "Valid",
    "Validator",
    "Verdict",
    "validate",
]

MOST_DOMAIN_TYPES = 4


class SlotSource(StrEnum):
    """Where a value came from."""

    USER = "user"
    INHERITED = "inherited"
    """The output of a flow that was completed before (FS-7)."""
    MEMORY = "memory"
    DEFAULT = "default"
    TOOL = "tool"


_SOURCES = {source.value: source for source in SlotSource}


@dataclass(slots=True)
class SlotValue:
    """`text`: the user's words for it. `confirmed`: the user said yes to this very value."""

    value: Json
    source: SlotSource = SlotSource.USER
    turn_id: TurnId | None = None
    confirmed: bool = False
    text: str = ""

    def serialize(self) -> JsonObject:
        body: JsonObject = {
            "value": copy_json(self.value),
            "source": self.source.value,
        }
        if self.turn_id is not None:
            body["turn_id"] = self.turn_id
        if self.confirmed:
            body["confirmed"] = True
        if self.text:
            body["text"] = self.text
        return body

    @classmethod
    def from_dict(cls, body: JsonObject) -> SlotValue:
        return cls(
            copy_json(body["value"]),
            _SOURCES[body["source"]],
            body.get("turn_id"),
            body.get("confirmed", False),
            body.get("text", ""),
        )


UNIVERSAL_TYPES: Mapping[str, SlotType] = {kind.name: kind for kind in UNIVERSAL}
LIBRARY_TYPES: Mapping[str, SlotType] = {kind.name: kind for kind in LIBRARY}
SLOT_TYPES: Mapping[str, SlotType] = {**UNIVERSAL_TYPES, **LIBRARY_TYPES}


def _canonical(name: str) -> str:
    return name.strip().replace(" ", "_").replace("-", "_")


@dataclass(frozen=True, slots=True)
class SlotTypes:
    """The slot types of one domain: twelve universal ones and at most four of its own."""

    types: Mapping[str, SlotType]

    @classmethod
    def of(cls, *own: str | SlotType, place: str = "ontology.yaml: slot_types") -> SlotTypes:
        """The universal types and the domain's own: names from the library, or types with a validator.

        Raises ConfigurationError with every mistake: more than four, unknown, or a taken name.
        """
        problems: list[Problem] = []
        types = dict(UNIVERSAL_TYPES)
        if len(own) > MOST_DOMAIN_TYPES:
            problems.append(Problem(place, f"At most four types are possible; there are {len(own)}."))
        for entry in own:
            kind = LIBRARY_TYPES.get(_canonical(entry)) if isinstance(entry, str) else entry
            if kind is None:
                known = ", ".join(LIBRARY_TYPES)
                problems.append(Problem(place, f"The library has no type {entry!r}; it has {known}."))
            elif kind.name in types:
                problems.append(Problem(place, f"The type {kind.name!r} exists already."))
            else:
                types[kind.name] = kind
        if problems:
            raise ConfigurationError(problems)
        return cls(types)

    def find(self, name: str) -> SlotType | None:
        """The type of this name; ``free text`` is the same as ``free_text``."""
        return self.types.get(name) or self.types.get(_canonical(name))

    def validate(self, value: Json, spec: SlotSpec) -> Verdict:
        """Judge `value` for the slot; null is never a value."""
        if value is None:
            return Rejected(f"The {spec.name.replace('_', ' ')} has no value yet.")
        kind = self.find(spec.type)
        if kind is None:
            return Rejected(f"The type {spec.type!r} of {spec.name!r} is not known to this domain.")
        return kind.check(value, spec)


EVERY_TYPE = SlotTypes(SLOT_TYPES)
"""Universal and library types together: for flow classes that were made without a domain."""


def check_any(value: Json, spec: SlotSpec) -> Verdict:
    """Any bounded JSON: for inputs that a flow declares without a slot of that name."""
    if is_bounded_json(value):
        return Valid(value)
    return Rejected(f"The {spec.name.replace('_', ' ')} is too large or too deeply nested.")


def validate(value: Json, spec: SlotSpec, types: SlotTypes = EVERY_TYPE) -> Verdict:
    """Judge `value` for the slot that `spec` describes."""
    return types.validate(value, spec)
