"""Metrics of one process, for Prometheus. What only the store knows is in `adapters.postgres.status`.

Names and labels are a contract with the alerts and the dashboard in `deploy/`. Labels come from closed
sets: flows, tools, models, prompts, checks; never from what users say.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector

from orchestrator.telemetry.signals import Signal, SignalType
from orchestrator.types import Json

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_BOUNDS = (*(str(float(bound)) for bound in _FAST), "+Inf")
_MICROS = 1e-6


class Durations(Collector):
    """A histogram of what every turn observes a dozen times: one addition each, without locks.

    So all observations of a process are made on one thread. `label`: its one label, if it has one.
    """

    def __init__(self, name: str, text: str, label: str | None = None) -> None:
        self._name, self._text, self._label = name, text, label
        self._series: dict[str, list[float]] = {}
        if label is None:
            self._begin("")
        REGISTRY.register(self)

    def observe(self, seconds: float, of: str = "") -> None:
        """Count it; `of` is the label's value."""
        series = self._series.get(of) or self._begin(of)
        series[bisect_left(_FAST, seconds)] += 1
        series[-1] += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        labels = () if self._label is None else (self._label,)
        family = HistogramMetricFamily(self._name, self._text, labels=labels)
        for of, (*counts, total) in self._series.copy().items():
            buckets = list(zip(_BOUNDS, accumulate(counts), strict=True))
            family.add_metric((of,) if labels else (), buckets, total)
        yield family

    def _begin(self, of: str) -> list[float]:
        """Counts of each bucket, the last without an end, and the sum."""
        return self._series.setdefault(of, [0.0] * (len(_FAST) + 2))


TURNS = Counter("parley_turns", "Turns that ended in this process.", ["status"])
TURNS_FAILED = Counter("parley_turn_attempts_failed", "Attempts of turns that broke.")
TURNS_LOST = Counter("parley_turns_fenced", "Turns given up because another worker had taken over.")
TURN_SECONDS = Durations("parley_turn_seconds", "From a turn's claim to its commit.")
QUEUE_SECONDS = Durations("parley_turn_queue_seconds", "From a turn's acceptance to its claim.")
PHASE_SECONDS = Durations("parley_turn_phase_seconds", "Phases of turns.", "phase")

MESSAGES_REFUSED = Counter("parley_messages_refused", "Malformed messages dropped from a queue.", ["queue"])
MODEL_CALLS = Counter(
    "parley_model_calls", "Questions to models, by what came of them.", ["model", "prompt", "outcome"]
)
MODEL_SECONDS = Histogram(
    "parley_model_seconds", "Time until a model's answer, retries included.", ["model"], buckets=_FAST
)
MODEL_TOKENS = Counter("parley_model_tokens", "Tokens that were paid for.", ["model"])
MODEL_COST = Counter("parley_model_cost", "Cost, in the currency of the domain's prices.", ["model"])
BUDGET_REFUSALS = Counter(
    "parley_model_budget_refusals", "Questions to models that a budget forbade, by whose it is.", ["scope"]
)
MODEL_OPEN = Gauge(
    "parley_model_breaker_open",
    "1 from a model's failures in a row until it answers this process.",
    ["model"],
)

TOOL_CALLS = Counter("parley_tool_calls", "Calls of tools, by what came of them.", ["tool", "status"])
TOOL_SECONDS = Histogram("parley_tool_seconds", "Time of calls that reached a tool.", ["tool"], buckets=_FAST)
RECOVERIES = Counter("parley_recoveries", "Steps of recovery that were taken.", ["rung"])
CHECKS_FAILED = Counter("parley_checks_failed", "Named checks that did not hold.", ["module", "check"])

RUNS = Counter(
    "parley_internal_runs", "Runs of Internal flows that ended in this process.", ["flow", "status"]
)
RUN_ITEMS = Counter("parley_internal_items", "Items of runs that this process did.", ["flow", "status"])

WEBHOOK_POSTS = Counter("parley_webhook_posts", "Events posted to webhooks, by what came of it.", ["outcome"])
WEBHOOKS_GIVEN_UP = Counter(
    "parley_webhooks_given_up", "Feeds whose receiver failed for too long: they wait for an operator."
)

HTTP_SECONDS = Histogram(
    "parley_http_seconds",
    "From a request until its answer begins.",
    ["method", "route", "status"],
    buckets=_FAST,
)
PROBLEMS = Counter("parley_http_problems", "Requests that were not granted, by the error's code.", ["code"])
LISTENERS = Gauge("parley_event_listeners", "Clients that follow a session at the moment.", ["kind"])


for _scope in ("call", "turn", "session", "day"):
    # Served from the start: Prometheus does not see the first event of a series that begins with it.
    BUDGET_REFUSALS.labels(_scope)


def count_signal(signal: Signal) -> None:
    """Count what a signal reports."""
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
    # As it is configured: an endpoint may answer by other names, and one that fails gives none.
    model = payload["asked"] or "none"
    MODEL_CALLS.labels(model, payload["prompt_id"], payload["outcome"]).inc()
    MODEL_SECONDS.labels(model).observe(payload["duration_ms"] / 1000)
    MODEL_TOKENS.labels(model).inc(payload["tokens"])
    MODEL_COST.labels(model).inc(payload["cost_micros"] * _MICROS)
    if payload["refused_by"] is not None:
        BUDGET_REFUSALS.labels(payload["refused_by"]).inc()
