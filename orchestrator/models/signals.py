"""The signals that model calls and breakers send."""

from orchestrator.models.breaker import CircuitView
from orchestrator.models.calling import CallContext, CallLog
from orchestrator.models.templates import Prompt
from orchestrator.telemetry import Signal, SignalType

SOURCE = "prompt_engineer"


def circuit_signal(view: CircuitView) -> Signal:
    """Word a change of a breaker as a signal."""
    payload = {
        "endpoint": view.endpoint,
        "model": view.model,
        "state": view.state.value,
        "failures": view.failures,
    }
    return Signal(source=SOURCE, type=SignalType.BREAKER, payload=payload)


def call_signal(prompt: Prompt, call: CallContext, log: CallLog, outcome: str, duration_ms: float) -> Signal:
    """Word one call as a signal. `outcome`: answered, or the code of the error that ended it."""
    return Signal(
        source=SOURCE,
        type=SignalType.MODEL_CALL,
        session=call.session_id,
        turn=call.turn_id,
        flow=call.flow,
        prompt_version=prompt.version,
        payload={
            "prompt_id": prompt.id,
            "prompt_digest": prompt.digest,
            "outcome": outcome,
            "model": log.model,
            "asked": log.asked,
            "refused_by": log.refused_by,
            "requests": log.requests,
            "failures": [list(failure) for failure in log.failures],
            "repaired": log.repaired,
            "doubled": log.doubled,
            "tokens": log.spent.tokens,
            "cost_micros": log.spent.cost_micros,
            "duration_ms": round(duration_ms, 1),
        },
    )
