"""States of a background run, their transitions, and consequences of a graph's shape.

Rules on statuses only; storage is behind the ports `runs` and `run_work`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """The status of a run."""

    WAITING = "waiting"
    """Has unfinished predecessors."""
    READY = "ready"
    """Can be claimed, once its time has come."""
    RUNNING = "running"
    """Claimed; its stages are running or wait for a worker."""
    DONE = "done"
    SKIPPED = "skipped"
    """`before_all` decided to skip it; no item was started."""
    FAILED = "failed"
    """A stage or an item failed."""
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """A predecessor failed; it never started. Redoing the predecessor unblocks it."""


ENDED = frozenset(
    {RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.BLOCKED}
)
SUCCEEDED = frozenset({RunStatus.DONE, RunStatus.SKIPPED})
"""Statuses that release successors."""
RUN_TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.WAITING: frozenset({RunStatus.READY, RunStatus.BLOCKED, RunStatus.CANCELLED}),
    RunStatus.READY: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset({RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.BLOCKED: frozenset({RunStatus.WAITING}),
}
"""Permitted transitions. The store rejects all others (`parley_run_transition`)."""


class Phase(StrEnum):
    """The stages of a claimed run."""

    BEFORE = "before_all"
    ITEMS = "items"
    AFTER = "after_all"


class ItemStatus(StrEnum):
    """The status of an item."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class RedoStatus(StrEnum):
    """The result of a run's rerun request."""

    NONE = "none"
    SCHEDULED = "scheduled"
    CEILING_REACHED = "ceiling_reached"


class Urgency(StrEnum):
    """The priority of a run while turns wait (IF-14)."""

    URGENT = "urgent"
    """A turn waits for it."""
    HOUSEKEEPING = "housekeeping"


class OnFailure(StrEnum):
    """The treatment of a failed run's successors."""

    BLOCK = "block"
    """They stay unrun, with the reason."""
    RELEASE = "release"
    """They run anyway."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node's current state, as far as it affects successors."""

    name: str
    status: RunStatus
    successors: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.BLOCK

    @property
    def blocks_successors(self) -> bool:
        """Return whether its successors can currently never run."""
        failed = self.status in ENDED - SUCCEEDED and self.on_failure is OnFailure.BLOCK
        return failed or self.status is RunStatus.BLOCKED


def unblock(nodes: dict[str, Node], again: str) -> dict[str, int]:
    """Return blocked nodes that wait again when `again` is rerun, with their unfinished predecessors.

    `nodes`: by name, including `again` with the status of a future run. A node blocked by another failure as
    well stays blocked.
    """
    before = {name: [node.name for node in nodes.values() if name in node.successors] for name in nodes}
    freed: dict[str, int] = {}
    waiting = [again]
    while waiting:
        for name in nodes[waiting.pop(0)].successors:
            blocked = name in nodes and nodes[name].status is RunStatus.BLOCKED and name not in freed
            if blocked and not any(nodes[one].blocks_successors and one not in freed for one in before[name]):
                freed[name] = 0
                waiting.append(name)
    for name in freed:
        freed[name] = sum(nodes[one].status not in ENDED or one in freed for one in before[name])
    return freed


def count_manual(succeeded: list[int | None]) -> int | None:
    """Return the count of a manual rerun, from the counts of the chain's successful runs (IF-5).

    The last of them is the current redo context: a failed rerun is retried under its own count. Without a
    success there is no chain yet, and the run starts over.
    """
    return (succeeded[-1] or 0) + 1 if succeeded else None
