"""What tools did to the world, as the session's ledger keeps it (RT-10, RT-12). Records and their states only."""

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
    """Recorded before the call; if nothing follows, nobody knows how it ended."""
    DONE = "done"
    FAILED = "failed"
    """The tool said that nothing was done; it may be tried again."""
    UNKNOWN = "unknown"
    """The call ended without telling whether it had its effect (RT-9)."""
    COMPENSATED = "compensated"
    """It was undone by the tool's compensation."""


OPEN = frozenset({LedgerStatus.STARTED, LedgerStatus.UNKNOWN})
"""Nobody knows whether an effect in these was had."""
MAY_BE_HAD = OPEN | {LedgerStatus.DONE}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call that is not idempotent is about to do.

    `instance`: the flow, or the place in a plan, that it is done for. `again`: the user, or the
    tool's status query, has decided that it is done although it may have been done before.
    `compensates`: the fingerprint of the effect that it undoes. `judge`: what a result tells.
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
    """One line of the ledger. `at` is when it last changed."""

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
    """Whose effect it is, where a branch has it from there."""


def fingerprint_effect(
    tool_id: ToolId, arguments: JsonObject, instance: str, *, defaults: Mapping[str, Json] | None = None
) -> str:
    """A short digest of an effect: the tool, the meaning of its arguments, the flow instance.

    Args:
        tool_id: the tool.
        arguments: its inputs.
        instance: what the effect is had for, see `Effect`.
        defaults: values that mean the same as leaving an argument out.
    """
    meant = {
        name: canonical
        for name, value in arguments.items()
        if (canonical := _canonical(value)) is not None
        and not (defaults and name in defaults and canonical == _canonical(defaults[name]))
    }
    return hash_json([tool_id, meant, instance])


def _canonical(value: Json) -> Json:
    """One way of writing each value: 2.0 is 2, spaces and composed letters do not count."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _canonical(part) for name, part in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_canonical(part) for part in cast("list[Json]", value)]
    return value
