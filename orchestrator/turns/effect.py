"""Side effects of tools in the session's ledger (RT-10, RT-12). Records and their states only."""

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import cast

from orchestrator.types import FlowId, Json, JsonObject, SessionId, ToolId, TurnId, hash_json


class LedgerStatus(StrEnum):
    STARTED = "started"
    """Recorded before the call; the outcome is unknown if nothing follows."""
    DONE = "done"
    FAILED = "failed"
    """The tool reported that nothing was done; it can be retried."""
    UNKNOWN = "unknown"
    """The call ended without reporting whether it had its side effect (RT-9)."""
    AWAITED = "awaited"
    """The tool accepted the call, and its result comes later (RT-32)."""
    COMPENSATED = "compensated"
    """Undone by the tool's compensation."""


OPEN = frozenset({LedgerStatus.STARTED, LedgerStatus.UNKNOWN, LedgerStatus.AWAITED})
"""States with an unknown outcome."""
MAY_BE_HAD = OPEN | {LedgerStatus.DONE}


@dataclass(frozen=True, slots=True)
class Effect:
    """The intended side effect of a non-idempotent call.

    `instance`: the flow, or the step of a plan, that needs it. `again`: the user, or the tool's status
    query, decided to repeat it although it may have happened. `compensates`: the fingerprint of the side
    effect that it undoes. `judge`: derives the status from a result.
    """

    fingerprint: str
    flow_id: FlowId
    tool_id: ToolId
    arguments: JsonObject
    slots: JsonObject
    judge: Callable[[Json], LedgerStatus]
    again: bool = False
    compensates: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A ledger entry. `at`: its last change."""

    session_id: SessionId
    fingerprint: str
    turn_id: TurnId
    step_key: str
    idempotency_key: str
    flow_id: FlowId
    tool_id: ToolId
    arguments: JsonObject
    slots: JsonObject
    status: LedgerStatus
    result: Json = None
    at: datetime | None = None
    of_session: SessionId | None = None
    """The session that had the side effect, if a fork inherited it."""


def fingerprint_effect(
    tool_id: ToolId, arguments: JsonObject, instance: str, *, defaults: Mapping[str, Json] | None = None
) -> str:
    """Return a short digest of a side effect: tool, normalized arguments, flow instance.

    Args:
        tool_id: the tool.
        arguments: its inputs.
        instance: what needs the side effect, see `Effect`.
        defaults: values equivalent to omitting an argument.
    """
    meant = {
        name: canonical
        for name, value in arguments.items()
        if (canonical := _canonical(value)) is not None
        and not (defaults and name in defaults and canonical == _canonical(defaults[name]))
    }
    return hash_json([tool_id, meant, instance])


def _canonical(value: Json) -> Json:
    """Return the canonical form of a value: 2.0 is 2, and spaces and composed letters do not matter."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _canonical(part) for name, part in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_canonical(part) for part in cast("list[Json]", value)]
    return value
