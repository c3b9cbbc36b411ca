"""``/metrics``: what this process counted, and the figures of the whole system, for Prometheus (RT-24)."""

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
"""What a gateway alone tells: a process that only imports this tells nothing of the whole system."""
gauge = partial(Gauge, registry=SYSTEM)

STORE_ANSWERS = gauge(
    "parley_store_answers", "1 when the store answered the last time that metrics were read, else 0."
)
UNFINISHED_TURNS = gauge("parley_unfinished_turns", "Accepted turns that have not ended.")
LANES = gauge("parley_lanes", "Sessions with unfinished turns, by whether somebody works on them.", ["state"])
OLDEST_TURN = gauge("parley_oldest_turn_age_seconds", "Age of the oldest unfinished turn.")
QUARANTINED = gauge("parley_quarantined_turns", "Turns that were set aside and wait for an operator.")
WORKERS = gauge("parley_workers", "Worker processes that the store knows of.")
APPROVALS = gauge("parley_pending_approvals", "Calls that wait for somebody's decision.")
OUTBOX = gauge("parley_outbox_waiting", "Messages committed and not yet sent.", ["kind"])
OUTBOX_AGE = gauge("parley_outbox_oldest_seconds", "Age of the oldest of them.", ["kind"])
RUNS = gauge("parley_internal_runs_waiting", "Internal flows that are due and not running.", ["urgency"])
RUNS_AGE = gauge("parley_internal_runs_oldest_seconds", "How long the first of them has waited.", ["urgency"])
WEBHOOKS = gauge("parley_webhook_feeds", "Webhooks' feeds that fail, or were given up.", ["state"])
JOB_FIRED = gauge("parley_job_fired_timestamp_seconds", "When a scheduled job was fired last.", ["scheduled"])
JOB_DUE = gauge(
    "parley_job_due_timestamp_seconds", "When it is due next; past: nobody has fired it.", ["scheduled"]
)

# Less than Prometheus waits for an answer: else it would get nothing at all when the store is down.
READ_WITHIN_S = 2.0
OUTBOX_KINDS = ("internal_flow", "notes")


@router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(operations: TheOperations) -> Response:
    """In the text format of Prometheus; `parley_store_answers` is 0 when the store does not answer."""
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
    """An empty queue shows as 0, so that an alert on it can end."""
    for name in {*names, *queues}:
        queue = queues.get(name, Queue())
        waiting.labels(name).set(queue.waiting)
        oldest.labels(name).set(queue.oldest_s)
