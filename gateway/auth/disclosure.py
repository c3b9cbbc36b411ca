"""Hide operators' notes, such as the author of and reason for a repair, from users (RT-35)."""

from dataclasses import replace

from orchestrator.turns.access import Caller
from orchestrator.turns.event import Event
from orchestrator.turns.lease import OPERATOR
from orchestrator.turns.repair import REPAIRED, without_reasons
from orchestrator.types import JsonObject


def turn_for(caller: Caller, told: JsonObject) -> JsonObject:
    return told if caller.operates else without_reasons(told)


def event_for(caller: Caller, event: Event) -> Event:
    if caller.operates or event.type != REPAIRED:
        return event
    return replace(event, payload=without_reasons(event.payload))


def history_for(caller: Caller, said: list[JsonObject]) -> list[JsonObject]:
    return said if caller.operates else [line for line in said if line["role"] != OPERATOR]
