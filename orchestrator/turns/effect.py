"""Side effects of tool calls, as stored in the session's ledger (RT-10, RT-12)."""

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestrator.types import (
    FlowId,
    Json,
    JsonObject,
    SessionId,
    ToolId,
    TurnId,
    hash_json,
    is_list,
    is_object,
)


class LedgerStatus(StrEnum):
    STARTED = "started"
    """Recorded before the call. Without a later record, the outcome is unknown."""
    DONE = "done"
    FAILED = "failed"
    """The tool reported that nothing was done. The call can be retried."""
    UNKNOWN = "unknown"
    """The call ended without reporting whether the side effect happened (RT-9)."""
    AWAITED = "awaited"
    """The tool accepted the call and will send its result later (RT-32)."""
    COMPENSATED = "compensated"
    """Undone by the tool's compensation."""


OPEN = frozenset({LedgerStatus.STARTED, LedgerStatus.UNKNOWN, LedgerStatus.AWAITED})
"""Statuses with an unknown outcome."""
MAY_BE_HAD = OPEN | {LedgerStatus.DONE}
"""Statuses of side effects that happened, or may have happened."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The intended side effect of a tool call.

    Args:
        slots: the flow's slot values.
        judge: returns the ledger status for a tool result.
        again: True to repeat the side effect even if it may have happened. The user or the status query
            decides this.
        compensates: the fingerprint of the earlier side effect that this call undoes.
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
    """A side effect in the ledger. `at`: the time of the last change."""

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
    """The session that made the call, if `session_id` is a fork that inherited the entry, or None."""


def fingerprint_effect(
    tool_id: ToolId, arguments: JsonObject, instance: str, *, defaults: Mapping[str, Json] | None = None
) -> str:
    """Return a digest that identifies a side effect by tool, normalized arguments and flow instance.

    Args:
        tool_id: the tool to call.
        arguments: the call's arguments.
        instance: the flow or plan step that needs the side effect.
        defaults: values that are equivalent to omitting an argument.
    """
    meant = {
        name: canonical
        for name, value in arguments.items()
        if (canonical := _canonical(value)) is not None
        and not (defaults and name in defaults and canonical == _canonical(defaults[name]))
    }
    return hash_json([tool_id, meant, instance])


def _canonical(value: Json) -> Json:
    """Normalize a value, so that 2.0 becomes 2 and strings don't differ in spacing or Unicode form."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if is_object(value):
        return {name: _canonical(part) for name, part in value.items()}
    if is_list(value):
        return [_canonical(part) for part in value]
    return value
