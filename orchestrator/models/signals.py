from dataclasses import asdict

from orchestrator.models.breaker import CircuitView
from orchestrator.models.call_log import CallLog
from orchestrator.models.calling import CallContext
from orchestrator.models.templates import Prompt
from orchestrator.ports.language_model import ChatMessage
from orchestrator.redaction import hide_secrets
from orchestrator.telemetry import Signal, SignalType
from orchestrator.types import Json, JsonObject

SOURCE = "prompt_engineer"


def circuit_signal(view: CircuitView) -> Signal:
    payload = asdict(view) | {"state": view.state.value, "not_taken": list(view.not_taken)}
    return Signal(source=SOURCE, type=SignalType.BREAKER, payload=payload)


def call_signal(
    prompt: Prompt,
    call: CallContext,
    log: CallLog,
    outcome: str,
    duration_ms: float,
    *,
    with_contents: bool = False,
) -> Signal:
    """Return the signal for a model call.

    `outcome`: ``answered``, or the code or type of the final error. `with_contents`: include the last request
    and answer, with secrets removed.
    """
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
            "failures": [[problem.model, problem.code] for problem in log.problems],
            "problem": None if outcome == "answered" or not log.problems else log.problems[-1].as_json(),
            "repaired": log.repaired,
            "doubled": log.doubled,
            "shortened": log.shortened,
            "corrected": log.corrected,
            "tokens": log.spent.tokens,
            "cached_tokens": log.cached_tokens,
            "reasoning_tokens": log.reasoning_tokens,
            "cost_micros": log.spent.cost_micros,
            "duration_ms": round(duration_ms, 1),
        },
        contents=_contents(log) if with_contents else {},
    )


def _contents(log: CallLog) -> JsonObject:
    answer = None if log.answer is None else _quote(log.answer)
    return {"messages": [_quote(message) for message in log.messages], "answer": answer}


def _quote(message: ChatMessage) -> Json:
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    text = "\n".join([*([message.content] if message.content else []), *calls])
    return {"role": message.role.value, "text": hide_secrets(text)}
