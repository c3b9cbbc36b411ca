"""JSON Schemas for models' answers to NLU prompts, generated from the domain's flows (NL-2).

Slots are a list of pairs, because a member for each slot would cost three times the tokens, and strict modes
would require all members.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

import orjson

from orchestrator.dialogue.slots import LIST_TYPES
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Digression, MessageKind
from orchestrator.models.schemas import array, bounded_text, closed, list_of, loose, one_of, one_of_or_null
from orchestrator.types import Json, JsonObject, is_list, is_object

MOST_FLOWS = 3
MOST_SLOTS = 6
MOST_WORDS = 5
LONGEST_VALUE = 80
LONGEST_FREE_TEXT = 120
"""Maximum length, in characters, of a reason, and of slot values if any slot is free text."""
LONGEST_WORDS = 24
_KINDS = tuple(kind.value for kind in MessageKind if kind is not MessageKind.PLAN_CHANGE)
_NUMBERS = frozenset({"level", "number"})
_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z]{3})?")
_ENDS = re.compile(r"(-?\d+(?:\.\d+)?)?\s*(?:\.\.|-|to)\s*(-?\d+(?:\.\d+)?)?")


def understanding_schema(flows: Sequence[FlowSpec]) -> JsonObject:
    """Return the schema for a message's interpretation. `flows`: the flows that the message can request."""
    intents = sorted({flow.intent for flow in flows})
    return closed(
        kind=one_of(_KINDS),
        intent=one_of_or_null(intents),
        flows=_scored(flows),
        slots=slot_pairs(slot_specs(flows), input_names(flows)),
        target=bounded_text(LONGEST_VALUE),
        digression=one_of_or_null([kind.value for kind in Digression]),
        not_understood=list_of(bounded_text(LONGEST_WORDS), MOST_WORDS),
    )


def another_flow_schema(flows: Sequence[FlowSpec]) -> JsonObject:
    return closed(
        flows=_scored(flows),
        slots=slot_pairs(slot_specs(flows), input_names(flows)),
        reason=bounded_text(LONGEST_FREE_TEXT),
    )


def values_schema(slots: Iterable[SlotSpec]) -> JsonObject:
    return closed(slots=slot_pairs({slot.name: (slot,) for slot in slots}, ()))


_TEXT: JsonObject = {"type": "string"}
_TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
SLOTS: JsonObject = {"anyOf": [{"type": "object"}, array(loose(["name", "value"], name=_TEXT))]}
SCORED_FLOWS: JsonObject = {
    **array(loose(["dact", "score"], dact=_TEXT, score={"type": "number"})),
    "maxItems": 10,
}
UNDERSTANDING = loose(
    ["kind", "flows", "slots"],
    kind={"enum": list(_KINDS)},
    intent=_TEXT_OR_NULL,
    flows=SCORED_FLOWS,
    slots=SLOTS,
    target=_TEXT_OR_NULL,
    digression={"enum": [*(kind.value for kind in Digression), None]},
    not_understood={"type": ["array", "null"], "items": _TEXT},
)
"""Schema for validating answers, looser than `understanding_schema`.

Without strict schemas, models may return slots as an object and omit members.
"""
ANOTHER_FLOW = loose(["flows", "slots"], flows=SCORED_FLOWS, slots=SLOTS)
VALUES = loose(["slots"], slots=SLOTS)


def slot_specs(flows: Iterable[FlowSpec]) -> dict[str, tuple[SlotSpec, ...]]:
    """Return the slots of flows by name. Several flows can declare the same name differently."""
    found: dict[str, tuple[SlotSpec, ...]] = {}
    for flow in flows:
        for slot in flow.slots.values():
            found[slot.name] = (*found.get(slot.name, ()), slot)
    return found


def input_names(flows: Iterable[FlowSpec]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for flow in flows for name in flow.inputs))


def read_pairs(slots: Json, specs: dict[str, SlotSpec]) -> Iterator[tuple[str, Json]]:
    """Yield slot names and values from an object or a list of pairs.

    Text in pairs is converted to the type of the slot in `specs`, if the slot is known.
    """
    if is_object(slots):
        yield from slots.items()
        return
    for pair in slots if is_list(slots) else ():
        name, value = str(pair["name"]), pair["value"]
        spec = specs.get(name)
        yield name, _read_text(value, spec.type) if isinstance(value, str) and spec is not None else value


def _read_text(text: str, kind: str) -> Json:
    """Convert text to a value for a slot type, or return the text itself if it can't be parsed."""
    said = text.strip()
    if kind in LIST_TYPES:
        return [part.strip() for part in said.split(",") if part.strip()]
    if kind == "dictionary":
        return _read_dictionary(said) or text
    if kind in _NUMBERS:
        return _number(said) if _AMOUNT.fullmatch(said) else text
    if kind == "money" and (amount := _AMOUNT.fullmatch(said)) is not None:
        currency = amount[2]
        return {"amount": _number(amount[1]), "currency": currency.upper()} if currency else _number(said)
    if kind == "range" and (ends := _ENDS.fullmatch(said)) is not None:
        return [None if end is None else _number(end) for end in ends.groups()]
    return text


def _read_dictionary(text: str) -> JsonObject:
    """Parse a JSON object, or pairs such as ``name: Volvo, doors: 4``. Return {} for other text."""
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(text)
        return found if is_object(found) else {}
    pairs = [part.partition(":") for part in text.split(",")]
    return {name.strip(): value.strip() for name, colon, value in pairs if colon and name.strip()}


def _number(text: str) -> Json:
    found = _AMOUNT.match(text)
    assert found is not None, "the caller must check that the text is a number"
    return float(found[1]) if "." in found[1] else int(found[1])


def _scored(flows: Iterable[FlowSpec]) -> JsonObject:
    dact = one_of(flow.dact for flow in flows)
    return list_of(closed(dact=dact, score={"type": "number"}), MOST_FLOWS)


def slot_pairs(slots: dict[str, tuple[SlotSpec, ...]], inputs: Collection[str]) -> JsonObject:
    names = list(dict.fromkeys((*slots, *inputs)))
    if not names:
        return list_of(closed(name={"type": "string"}), 0)
    free = any(slot.type == "free_text" for specs in slots.values() for slot in specs)
    value = bounded_text(LONGEST_FREE_TEXT if free else LONGEST_VALUE)
    return list_of(closed(name=one_of(names), value=value), MOST_SLOTS)
