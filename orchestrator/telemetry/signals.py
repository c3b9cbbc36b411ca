"""Signals: the one envelope of everything worth evaluating (CO-6).

Where signals are kept is decided by whoever passes a `RecordSignal`; nothing here writes them but the log.
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
    """The kinds of facts that signals report."""

    PREDICTION = "prediction"
    CHECK = "check"
    TOOL_CALL = "tool_call"
    MODEL_CALL = "model_call"
    BREAKER = "breaker"
    RECOVERY = "recovery"
    VOTE = "vote"
    TEMPLATE = "template"
    PLAN = "plan"
    FEEDBACK = "feedback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One observed fact about a turn (CO-6). `source` names the module or component."""

    source: str
    type: SignalType
    session: SessionId | None = None
    turn: TurnId | None = None
    flow: FlowId | None = None
    prompt_version: str | None = None
    payload: Mapping[str, Json] = field(default_factory=dict[str, Json])
    contents: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    """What was said: kept with the turn, and in no log."""
    id: str = field(default_factory=partial(new_id, "signal"))
    time: datetime = field(default_factory=partial(datetime.now, UTC))


RecordSignal: TypeAlias = Callable[[Signal], None]


def drop_signal(signal: Signal) -> None:
    """Receive a signal and keep nothing, for callers that do not evaluate."""
    del signal


def describe(signal: Signal) -> dict[str, Json]:
    """A signal as it is kept with its turn: what the turn's own row says already is left out."""
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
    """From now on, what this task and its children `keep` about the turn is in `kept` too."""
    _turn.set((turn_id, kept))


def keep(signal: Signal) -> None:
    """Keep a signal, of somebody who does not know the turn's world, with the turn it is about."""
    at_work = _turn.get()
    if at_work is not None and at_work[0] == signal.turn:
        at_work[1].append(signal)


_signals = structlog.get_logger("orchestrator.signals")


def log_signal(signal: Signal) -> None:
    """Write what operators ask for into the log: calls of models, and changes of their breakers."""
    match signal.type:
        case SignalType.BREAKER:
            _signals.warning("The breaker of a model changed.", **signal.payload)
        case SignalType.MODEL_CALL:
            _signals.info("A model was asked.", session=signal.session, turn=signal.turn, **signal.payload)
        case _:
            return
