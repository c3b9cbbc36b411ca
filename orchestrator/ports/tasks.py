"""Names of the Celery tasks and queues: the queue contract that senders and workers share."""

from __future__ import annotations

from typing import Final

SUBMIT_TURN: Final = "orchestrator.submit_turn"
RUN_SESSION: Final = "orchestrator.run_session"
RECONCILE: Final = "orchestrator.reconcile"
START_RUN: Final = "internal_flows.start_run"

SUBMISSIONS: Final = "submissions"
TURNS: Final = "turns"
INTERNAL: Final = "internal"
URGENT: Final = "urgent"

QUEUES: Final = (SUBMISSIONS, TURNS, INTERNAL, URGENT)

ROUTES: Final = {
    SUBMIT_TURN: {"queue": SUBMISSIONS},
    RUN_SESSION: {"queue": TURNS},
    RECONCILE: {"queue": URGENT},
    START_RUN: {"queue": INTERNAL},
}
