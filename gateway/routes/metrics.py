"""Prometheus metrics of this process and of the whole system (RT-24)."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from gateway.dependencies import TheOperations
from orchestrator.adapters.postgres.status import Queue, SystemStatus
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.status import Urgency

router = APIRouter(tags=["operate"])

SYSTEM = CollectorRegistry()
"""Metrics of the whole system, which only gateways export."""
gauge = partial(Gauge, registry=SYSTEM)

STORE_ANSWERS = gauge("parley_store_answers", "1 if PostgreSQL responded to the last scrape; otherwise, 0.")
UNFINISHED_TURNS = gauge("parley_unfinished_turns", "Accepted turns that are queued or running.")
LANES = gauge("parley_lanes", "Sessions with unfinished turns, held by a worker or waiting.", ["state"])
OLDEST_TURN = gauge("parley_oldest_turn_age_seconds", "Age of the oldest unfinished turn.")
QUARANTINED = gauge("parley_quarantined_turns", "Quarantined turns that wait for an operator.")
WORKERS = gauge("parley_workers", "Registered worker processes.")
APPROVALS = gauge("parley_pending_approvals", "Approvals without a decision.")
OUTBOX = gauge("parley_outbox_waiting", "Committed messages that aren't sent yet.", ["kind"])
OUTBOX_AGE = gauge("parley_outbox_oldest_seconds", "Age of the oldest unsent message.", ["kind"])
RUNS = gauge("parley_internal_runs_waiting", "Background runs that are due and not running.", ["urgency"])
RUNS_AGE = gauge(
    "parley_internal_runs_oldest_seconds", "Longest waiting time of a background run.", ["urgency"]
)
WEBHOOKS = gauge("parley_webhook_feeds", "Failing or abandoned webhook feeds.", ["state"])
JOB_FIRED = gauge(
    "parley_job_fired_timestamp_seconds", "Time when a scheduled job last started.", ["scheduled"]
)
JOB_DUE = gauge(
    "parley_job_due_timestamp_seconds",
    "Time when a scheduled job is due next; in the past if no scheduler is running.",
    ["scheduled"],
)

# Shorter than Prometheus's timeout, so that scrapes succeed even if the store is down.
READ_WITHIN_S = 2.0
OUTBOX_KINDS = ("internal_flow", "notes")


@router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(operations: TheOperations) -> Response:
    """Return metrics in the Prometheus text format. `parley_store_answers` is 0 if the store doesn't respond."""
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            _set_gauges(await operations.stats.read())
    except (Unavailable, TimeoutError):
        STORE_ANSWERS.set(0)
    return Response(generate_latest() + generate_latest(SYSTEM), media_type=CONTENT_TYPE_LATEST)


def _set_gauges(stats: SystemStatus) -> None:
    STORE_ANSWERS.set(1)
    UNFINISHED_TURNS.set(stats.unfinished_turns)
    LANES.labels("held").set(stats.held_lanes)
    LANES.labels("waiting").set(stats.waiting_lanes)
    OLDEST_TURN.set(stats.oldest_turn_s)
    QUARANTINED.set(stats.quarantined_turns)
    WORKERS.set(stats.workers)
    APPROVALS.set(stats.pending_approvals)
    WEBHOOKS.labels("failing").set(stats.webhooks_failing)
    WEBHOOKS.labels("given_up").set(stats.webhooks_given_up)
    for job, (fired, due) in stats.jobs.items():
        JOB_FIRED.labels(job).set(fired)
        JOB_DUE.labels(job).set(due)
    _set_queues(stats.outbox, OUTBOX_KINDS, OUTBOX, OUTBOX_AGE)
    _set_queues(stats.runs, [urgency.value for urgency in Urgency], RUNS, RUNS_AGE)


def _set_queues(queues: Mapping[str, Queue], names: Iterable[str], waiting: Gauge, oldest: Gauge) -> None:
    """Set the gauges of all queues. `names`: queues to set to 0 if they are empty, so that alerts can resolve."""
    for name in {*names, *queues}:
        queue = queues.get(name, Queue())
        waiting.labels(name).set(queue.waiting)
        oldest.labels(name).set(queue.oldest_s)
