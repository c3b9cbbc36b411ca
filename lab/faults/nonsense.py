"""Generate wrong interpretations that a model might return, such as unrelated tasks and invented values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random

import orjson

from lab.faults.ports import HALF_A_YES, NO_JSON, YES
from orchestrator.dialogue.slots import Rejected
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.domain.model import Domain
from orchestrator.types import Dact, Json, JsonObject

_INVENTED = "made_up"
_OTHER_FLOWS = 2
_WRONG_VALUES = 4
_NEVER_SAID: tuple[Json, ...] = ("2027-03-09", "19:45", 7, "Zanzibar", {"Zanzibar": 7})
"""Invented values. A slot without a list of values gets the first value that is valid for it."""


def list_nonsense(
    tasks: Mapping[str, JsonObject], before: Mapping[str, JsonObject], domain: Domain, chance: Random
) -> Iterator[str]:
    """Yield incorrect interpretations of a message that a model might return.

    `tasks`: the slots that the message fills, by flow. `before`: the slots filled earlier, by flow.
    """
    yield from (NO_JSON, YES, HALF_A_YES, _INVENTED)
    flows = sorted(flow.spec.dact for flow in domain.flows.values() if flow.spec.confirm)
    yield from chance.sample(flows, min(_OTHER_FLOWS, len(flows)))
    if tasks:
        dact = list(tasks)[-1]
        held = tasks[dact] or before.get(dact, {})
        wrong = [*_fill_wrongly(domain.flows[Dact(dact)].spec, held, domain, chance)]
        for values in chance.sample(wrong, min(_WRONG_VALUES, len(wrong))):
            yield f"{dact} {orjson.dumps(values).decode()}"


def _fill_wrongly(spec: FlowSpec, held: JsonObject, domain: Domain, chance: Random) -> Iterator[JsonObject]:
    yield {**held, _INVENTED: "Zanzibar"}
    for one, other in combinations(held, 2):
        yield {**held, one: held[other], other: held[one]}
    for name, slot in spec.slots.items():
        for value in (
            _find_other(slot, held, domain, chance),
            held[chance.choice([*held])] if held else None,
        ):
            if value is not None and value != held.get(name):
                yield {**held, name: value}


def _find_other(slot: SlotSpec, held: JsonObject, domain: Domain, chance: Random) -> Json:
    """Return a valid slot value that differs from the held value, or None if there is none."""
    listed = list(slot.values)
    if slot.entity is not None and slot.entity in domain.entities:
        listed = [value.canonical for value in domain.entities[slot.entity].values]
    given = [value for value in listed or _NEVER_SAID if value != held.get(slot.name)]
    fitting = given if listed else [one for one in given if not _is_rejected(one, slot, domain)][:1]
    return chance.choice(fitting) if fitting else None


def _is_rejected(value: Json, slot: SlotSpec, domain: Domain) -> bool:
    return isinstance(domain.slot_types.validate(value, slot), Rejected)
