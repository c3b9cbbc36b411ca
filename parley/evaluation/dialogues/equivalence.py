"""Declare which slots of different services hold the same, by what the schema says of them and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from orchestrator.types import Dact
from parley.evaluation.dialogues.dataset import SchemaIntent, Service

_ORIGIN = r"\b(?:leaving from|originates?|origin|departs?|departure|starting)\b"
_CITY = re.compile(
    rf"^(?!.*(?:{_ORIGIN}|station|airport|street)).*(?:\bcity\b|\btown\b|\barea\b)", re.IGNORECASE
)
_LOCATION = re.compile(r"^(?:location|destination) (?:of|for) the\b", re.IGNORECASE)
"""Means the city where a service knows no other."""
_FROM = re.compile(rf"\bcity\b.*{_ORIGIN}|{_ORIGIN}.*\bcity\b", re.IGNORECASE)
_PEOPLE = re.compile(
    r"\bnumber of (?:\w+ )?(?:passengers|people|persons|seats|travell?ers|riders|guests|tickets|adults)\b",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"^(?!.*(?:return|drop.?off|check.?out|\bend\b|release|birth)).*\b(?:date|day)\b", re.IGNORECASE
)
_VENUE = re.compile(r"\bname of (?:the )?(?:\w+ )?location\b|\baddress\b", re.IGNORECASE)
_RIDE = re.compile(r"^destination\b.*\b(?:taxi|cab|ride)\b", re.IGNORECASE)

Given = Mapping[Dact, tuple[Service, tuple[str, ...]]]
"""By flow, its service and what the flow gives."""


def find_equivalents(service: Service, intent: SchemaIntent, name: str, flows: Given) -> list[str]:
    """Name what other services' flows give that the slot of an intent holds, too.

    A day is only taken over by what asks before it does anything: what is looked up may be for any.
    """
    ways: list[Callable[[Service, str], bool]] = []
    if _is_place(service, name):
        ways.append(_is_place)
    if _RIDE.search(service.slots[name].description):
        ways.append(_described(_VENUE))
    alike = (_FROM, _PEOPLE, _DAY) if intent.is_transactional else (_FROM, _PEOPLE)
    ways += [_described(one) for one in alike if one.search(service.slots[name].description)]
    return [
        f"{dact}.{given}"
        for dact, (other, names) in flows.items()
        if other.name != service.name
        for given in names
        if any(way(other, given) for way in ways)
    ]


def _described(pattern: re.Pattern[str]) -> Callable[[Service, str], bool]:
    return lambda service, name: pattern.search(service.slots[name].description) is not None


def _is_place(service: Service, name: str) -> bool:
    """Say whether a slot holds the city where something is; a location does in a service without cities."""
    if _RIDE.search(service.slots[name].description):
        return False
    if _CITY.search(service.slots[name].description):
        return True
    has_city = any(_CITY.search(slot.description) for slot in service.slots.values())
    return not has_city and _LOCATION.search(service.slots[name].description) is not None
