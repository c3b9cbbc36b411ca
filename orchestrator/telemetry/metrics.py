"""Prometheus metrics of one process. For metrics from the store, see `adapters.postgres.status`.

The alerts and the dashboard in `deploy/` depend on names and labels. Labels come from closed sets such as
flows, tools, models and checks, and never from users' text.
"""

from prometheus_client import Counter, Gauge, Histogram

from orchestrator.telemetry.signals import Signal, SignalType
from orchestrator.types import Json

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_MICROS = 1e-6

TURNS = Counter("parley_turns", "Turns that ended in this process.", ["status"])
TURNS_FAILED = Counter("parley_turn_attempts_failed", "Failed turn attempts.")
TURNS_LOST = Counter("parley_turns_fenced", "Turns lost to another worker (fenced).")
TURN_SECONDS = Histogram("parley_turn_seconds", "Time from a turn's claim to its commit.", buckets=_FAST)
QUEUE_SECONDS = Histogram(
    "parley_turn_queue_seconds", "Time from a turn's acceptance to its claim.", buckets=_FAST
)
PHASE_SECONDS = Histogram(
    "parley_turn_phase_seconds", "Time spent in each phase of a turn.", ["phase"], buckets=_FAST
)

MESSAGES_REFUSED = Counter(
    "parley_messages_refused", "Malformed or unknown messages dropped from a queue.", ["queue"]
)
MODEL_CALLS = Counter("parley_model_calls", "Model calls, by outcome.", ["model", "prompt", "outcome"])
MODEL_SECONDS = Histogram(
    "parley_model_seconds", "Time until a model's answer, including retries.", ["model"], buckets=_FAST
)
MODEL_TOKENS = Counter("parley_model_tokens", "Model tokens used.", ["model"])
MODEL_COST = Counter("parley_model_cost", "Model cost in US dollars.", ["model"])
BUDGET_REFUSALS = Counter(
    "parley_model_budget_refusals",
    "Model calls refused by a budget, by scope (call, turn, session, user, tenant or day).",
    ["scope"],
)
MODEL_OPEN = Gauge(
    "parley_model_breaker_open",
    "1 while the model's circuit breaker is open.",
    ["model"],
)

TOOL_CALLS = Counter("parley_tool_calls", "Tool calls, by outcome.", ["tool", "status"])
TOOL_SECONDS = Histogram(
    "parley_tool_seconds", "Duration of tool calls, excluding cached calls.", ["tool"], buckets=_FAST
)
RECOVERIES = Counter("parley_recoveries", "Recovery steps, by kind.", ["rung"])
CHECKS_FAILED = Counter("parley_checks_failed", "Failed module checks.", ["module", "check"])

RUNS = Counter("parley_internal_runs", "Background runs that ended in this process.", ["flow", "status"])
RUN_ITEMS = Counter(
    "parley_internal_items", "Background run items that ended in this process.", ["flow", "status"]
)

WEBHOOK_POSTS = Counter("parley_webhook_posts", "Webhook deliveries, by outcome.", ["outcome"])
WEBHOOKS_GIVEN_UP = Counter("parley_webhooks_given_up", "Webhooks abandoned after failing for too long.")

HTTP_SECONDS = Histogram(
    "parley_http_seconds",
    "Time from a request to the start of its response.",
    ["method", "route", "status"],
    buckets=_FAST,
)
PROBLEMS = Counter("parley_http_problems", "Refused requests, by error code.", ["code"])
LISTENERS = Gauge("parley_event_listeners", "Connected clients that follow a session.", ["kind"])


for _scope in ("call", "turn", "session", "day"):
    # Prometheus misses a new series' first increment, so export the series at 0.
    BUDGET_REFUSALS.labels(_scope)


def count_signal(signal: Signal) -> None:
    payload = signal.payload
    match signal.type:
        case SignalType.MODEL_CALL:
            _count_model_call(payload)
        case SignalType.BREAKER:
            MODEL_OPEN.labels(payload["model"]).set(payload["state"] != "closed")
        case SignalType.TOOL_CALL:
            TOOL_CALLS.labels(payload["tool_id"], payload["status"]).inc()
        case SignalType.RECOVERY:
            RECOVERIES.labels(payload["rung"]).inc()
        case SignalType.CHECK if not payload.get("ok", True):
            CHECKS_FAILED.labels(signal.source, payload["check"]).inc()
        case _:
            return


def _count_model_call(payload: Json) -> None:
    # Use the configured name: endpoints can return a different name, and failed calls return no name.
    model = payload["asked"] or "none"
    MODEL_CALLS.labels(model, payload["prompt_id"], payload["outcome"]).inc()
    MODEL_SECONDS.labels(model).observe(payload["duration_ms"] / 1000)
    MODEL_TOKENS.labels(model).inc(payload["tokens"])
    MODEL_COST.labels(model).inc(payload["cost_micros"] * _MICROS)
    if payload["refused_by"] is not None:
        BUDGET_REFUSALS.labels(payload["refused_by"]).inc()
