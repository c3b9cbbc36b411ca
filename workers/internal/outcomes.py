"""Outcomes of a run's Celery task. `workers.run_tasks` translates them for Celery."""

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import SUCCEEDED, RunStatus, Urgency


class RunFailed(Exception):
    """Raised for a failed, blocked or canceled run. `error`: why the run did not succeed.

    Worker logs and Flower show the exception's text. If there is a run ID, the text contains nothing else, because
    the error could quote user content. The task's result contains the error.
    """

    def __init__(self, error: str, run_id: str = "") -> None:
        super().__init__(error)
        self.run_id = run_id

    def __str__(self) -> str:
        return f"run {self.run_id}" if self.run_id else str(self.args[0])

    def __repr__(self) -> str:
        return f"RunFailed({self})"


@dataclass(frozen=True, slots=True)
class Ended:
    """An ended run. `error`: the reason, or None if the run succeeded."""

    run_id: str
    status: RunStatus
    error: str | None = None


@dataclass(frozen=True, slots=True)
class InShares:
    """A run with stored items, which `holders` tasks can share."""

    run_id: str
    urgency: Urgency
    holders: int


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run that has ended and requested a rerun."""

    hint: Hint


@dataclass(frozen=True, slots=True)
class Later:
    """A request to retry the task after `after_s` seconds.

    Reasons: the run is not due, maintenance is deferred while turns wait, or this worker is stopping.
    """

    after_s: float


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A run that needs nothing from this task.

    The run does not exist, waits for a predecessor, is held by another worker, or has already been reported.
    """


Outcome: TypeAlias = Ended | InShares | Rerun | Later | Elsewhere


def ended(run_id: str, status: RunStatus, why: str | None) -> Ended:
    return Ended(run_id, status, None if status in SUCCEEDED else why_ended(status, why))


def why_ended(status: RunStatus, why: str | None) -> str:
    return why or f"The run is {status.value}."
