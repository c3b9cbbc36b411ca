"""Background runs, for workers: claims and results.

A claim permits a worker to execute part of a run while the claim's token is current. Previous holders can no
longer write (IF-9).
"""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.ports.runs.records import Hint, Progress
from orchestrator.ports.runs.status import ItemStatus, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run's data for its stages. `options` and `data`: the values after `before_all`."""

    run_id: str
    tenant_id: TenantId
    session_id: SessionId | None
    flow: str
    redo_count: int | None
    parameters: JsonObject
    options: JsonObject
    config: JsonObject
    data: Json
    urgency: Urgency = Urgency.BACKGROUND
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A claim on a phase of a run, valid while `token` is current.

    Args:
        attempts: the number of attempts, including this one.
        inputs: the run's inputs; empty after the items have started.
        items: item counts, for `after_all`.
    """

    facts: RunFacts
    token: int
    phase: Phase
    attempts: int
    inputs: tuple[Json, ...] = ()
    items: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """An item to execute. `attempts`: the number of attempts, including this one."""

    position: int
    input: Json
    attempts: int


@dataclass(frozen=True, slots=True)
class ItemsClaim:
    """A claim on some of a run's items, valid while `token` is current."""

    facts: RunFacts
    token: int
    items: tuple[ClaimedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """An item's result: an output, a skip reason, or an error."""

    position: int
    status: ItemStatus
    output: Json = None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run's result.

    Args:
        closing: the result of `after_all`.
        redo_count: the number of the rerun, from 1, or None if the run is not rerun.
        redo_after_s: the delay before the rerun, in seconds.
    """

    status: RunStatus
    closing: Json = None
    reason: str | None = None
    error: str | None = None
    redo: RedoStatus = RedoStatus.NONE
    redo_count: int | None = None
    redo_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run that could not be claimed.

    Args:
        held: True if a worker holds the run or some of its items.
        reported: True if the run's task has reported the run's end.
        began: True if any stage of the run was started.
        why: the error, or the reason why the run was skipped or blocked.
        waits_s: seconds until the run can start.
        holders: the maximum number of tasks that can share the unfinished items, or 0 if all are finished.
    """

    status: RunStatus
    phase: Phase
    urgency: Urgency
    held: bool
    reported: bool
    began: bool
    why: str | None
    waits_s: float
    holders: int | None


@dataclass(frozen=True, slots=True)
class LostShare:
    """A Celery task for some of a run's items, whose worker died or lost the claim."""

    task_id: str
    run_id: str
    flow: str
    urgency: Urgency


@dataclass(frozen=True, slots=True)
class Unrun:
    """A run that was blocked or canceled before any of its tasks ran."""

    run_id: str
    task_id: str
    flow: str
    status: RunStatus
    why: str | None


@dataclass(frozen=True, slots=True)
class Swept:
    hints: tuple[Hint, ...] = ()
    shares: tuple[LostShare, ...] = ()
    unrun: tuple[Unrun, ...] = ()


class Deferred(StrEnum):
    """The result of a claim that is deferred because turns wait for workers."""

    ITEMS = "items"


class Recorded(StrEnum):
    """The state of a run after item results were recorded."""

    LOST = "lost"
    """The claim is no longer current; nothing was written."""
    MORE = "more"
    """The run may have other unfinished items."""
    ALL = "all"
    """All items are finished, so `after_all` can start."""
