"""Signals: records of predictions, calls, checks and other events, for evaluation (CO-6).

Components report signals to a `RecordSignal`, a callback that decides where to store them.
"""

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import TypeAlias

import structlog

from orchestrator.types import FlowId, Json, SessionId, TurnId, new_id


class SignalType(StrEnum):
    PREDICTION = "prediction"
    CHECK = "check"
    TOOL_CALL = "tool_call"
    MODEL_CALL = "model_call"
    BREAKER = "breaker"
    RECOVERY = "recovery"
    TEMPLATE = "template"
    PLAN = "plan"
    FEEDBACK = "feedback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """An event of a turn, for evaluation. `source`: the component that reports the event."""

    source: str
    type: SignalType
    session: SessionId | None = None
    turn: TurnId | None = None
    flow: FlowId | None = None
    prompt_version: str | None = None
    payload: Mapping[str, Json] = field(default_factory=dict[str, Json])
    contents: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    """Text from users, models or tools. The text is stored with the turn and never logged."""
    id: str = field(default_factory=partial(new_id, "signal"))
    time: datetime = field(default_factory=partial(datetime.now, UTC))


RecordSignal: TypeAlias = Callable[[Signal], None]


def drop_signal(signal: Signal) -> None:
    del signal


def describe(signal: Signal) -> dict[str, Json]:
    """Return a signal in the format that is stored with its turn, without the turn's own IDs."""
    body: dict[str, Json] = {
        "id": signal.id,
        "source": signal.source,
        "type": signal.type.value,
        "time": signal.time.isoformat(),
        "payload": {**signal.payload, **signal.contents},
    }
    if signal.flow is not None:
        body["flow_id"] = signal.flow
    if signal.prompt_version is not None:
        body["prompt_version"] = signal.prompt_version
    return body


def describe_all(signals: Iterable[Signal]) -> tuple[dict[str, Json], ...]:
    return tuple(describe(signal) for signal in signals)


_turn: ContextVar[tuple[TurnId, list[Signal]] | None] = ContextVar("signals of a turn", default=None)


def keep_for_turn(turn_id: TurnId, kept: list[Signal]) -> None:
    """Set the list to which `keep` appends the turn's signals, in the current asyncio task and its child tasks."""
    _turn.set((turn_id, kept))


def keep(signal: Signal) -> None:
    """Append a signal to the list that `keep_for_turn` set for its turn. Other turns' signals are ignored.

    Use this from components that can't access the turn's data.
    """
    at_work = _turn.get()
    if at_work is not None and at_work[0] == signal.turn:
        at_work[1].append(signal)


_EXPECTED = frozenset({"answered", "model_circuit_open", "CancelledError"})
"""Outcomes of a model call that are logged without a warning. Open circuit breakers have their own warning."""
_signals = structlog.get_logger("orchestrator.signals")


def log_signal(signal: Signal) -> None:
    """Log the signals that operators need: model calls and circuit breaker changes."""
    match signal.type:
        case SignalType.BREAKER:
            _signals.warning("A model's circuit breaker changed.", **signal.payload)
        case SignalType.MODEL_CALL:
            said = {"session": signal.session, "turn": signal.turn, **signal.payload}
            if signal.payload["outcome"] in _EXPECTED:
                _signals.info("A model call ended.", **said)
            else:
                _signals.warning("A model call failed.", **said | (signal.payload["problem"] or {}))
        case _:
            return
