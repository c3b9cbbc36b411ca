"""Names of the Celery tasks and queues: the queue contract that senders and workers share."""

from typing import Final

from orchestrator.ports.runs.status import Urgency

SUBMIT_TURN: Final = "orchestrator.submit_turn"
RUN_SESSION: Final = "orchestrator.run_session"
START_RUN: Final = "internal_flows.start_run"
ADVANCE_RUN: Final = "internal_flows.advance"
"""A run may have a stage to do: `before_all` or `after_all`."""
RUN_ITEMS: Final = "internal_flows.items"
"""A run may have items to do."""

SUBMISSIONS: Final = "submissions"
TURNS: Final = "turns"
INTERNAL: Final = "internal"
URGENT: Final = "urgent"

QUEUE_OF: Final = {Urgency.URGENT: URGENT, Urgency.HOUSEKEEPING: INTERNAL}
"""Where messages about a run go."""

QUEUES: Final = (SUBMISSIONS, TURNS, INTERNAL, URGENT)

ROUTES: Final = {
    SUBMIT_TURN: {"queue": SUBMISSIONS},
    RUN_SESSION: {"queue": TURNS},
    START_RUN: {"queue": INTERNAL},
    ADVANCE_RUN: {"queue": INTERNAL},
    RUN_ITEMS: {"queue": INTERNAL},
}
