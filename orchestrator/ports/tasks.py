"""Names of Celery tasks and queues, shared by senders and workers."""

from typing import Final

from orchestrator.ports.runs.status import Urgency

SUBMIT_TURN: Final = "orchestrator.submit_turn"
CANCEL_TURN: Final = "orchestrator.cancel_turn"
SHOW_TURN: Final = "orchestrator.show_turn"
DECIDE_APPROVAL: Final = "orchestrator.decide_approval"
SEND_EVENT: Final = "orchestrator.send_event"
CANCEL_EVENT: Final = "orchestrator.cancel_event"
RUN_SESSION: Final = "orchestrator.run_session"
START_RUN: Final = "internal_flows.start_run"
RUN_FLOW: Final = "internal_flows.run"
"""The task that executes a background run. It ends when the run ends."""
RUN_ITEMS: Final = "internal_flows.items"
"""The task that executes some of a background run's items."""

SUBMISSIONS: Final = "submissions"
TURNS: Final = "turns"
INTERNAL: Final = "internal"
URGENT: Final = "urgent"

QUEUE_OF: Final = {Urgency.URGENT: URGENT, Urgency.BACKGROUND: INTERNAL}

QUEUES: Final = (SUBMISSIONS, TURNS, INTERNAL, URGENT)

ROUTES: Final = {
    SUBMIT_TURN: {"queue": SUBMISSIONS},
    CANCEL_TURN: {"queue": SUBMISSIONS},
    SHOW_TURN: {"queue": SUBMISSIONS},
    DECIDE_APPROVAL: {"queue": SUBMISSIONS},
    SEND_EVENT: {"queue": SUBMISSIONS},
    CANCEL_EVENT: {"queue": SUBMISSIONS},
    RUN_SESSION: {"queue": TURNS},
    START_RUN: {"queue": INTERNAL},
    RUN_FLOW: {"queue": INTERNAL},
    RUN_ITEMS: {"queue": INTERNAL},
    # Celery's own tasks, which run chunks and replaced groups.
    "celery.starmap": {"queue": SUBMISSIONS},
    "celery.map": {"queue": SUBMISSIONS},
    "celery.accumulate": {"queue": SUBMISSIONS},
}

SENDERS_QUEUE: Final = "celery"
"""Celery's default queue, which receives callbacks without a queue name. Clients' own workers usually consume it."""
