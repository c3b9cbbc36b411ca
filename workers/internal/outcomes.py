"""Outcomes of a run's message: a closed set, which the Celery task maps to Celery's mechanisms."""

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import SUCCEEDED, RunStatus, Urgency


class RunFailed(Exception):
    """A failed, blocked or canceled run; its only argument is the error.

    Worker logs and Flower show an exception's text, which could quote contents. The text therefore only
    names the run; the task's result has the error.
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
    """The run has ended; `error`: why, unless it succeeded."""

    run_id: str
    status: RunStatus
    error: str | None = None


@dataclass(frozen=True, slots=True)
class InShares:
    """Its items are stored, and `holders` tasks can share them."""

    run_id: str
    urgency: Urgency
    holders: int


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run that has ended and requested a rerun."""

    hint: Hint


@dataclass(frozen=True, slots=True)
class Later:
    """A deferred run: turns wait, it is not due, or this worker is stopping."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another worker has it, or its task has already reported."""


Outcome: TypeAlias = Ended | InShares | Rerun | Later | Elsewhere


def ended(run_id: str, status: RunStatus, why: str | None) -> Ended:
    """Return the outcome of an ended run."""
    return Ended(run_id, status, None if status in SUCCEEDED else why_ended(status, why))


def why_ended(status: RunStatus, why: str | None) -> str:
    """Return the error of an unsuccessful run."""
    return why or f"The run is {status.value}."
