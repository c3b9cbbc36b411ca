"""Statuses of background runs, their transitions, and how they affect successors."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    WAITING = "waiting"
    """A predecessor is unfinished."""
    READY = "ready"
    """A worker can claim the run once it is due."""
    RUNNING = "running"
    """The run was claimed, and its stages are running or wait for a worker."""
    DONE = "done"
    SKIPPED = "skipped"
    """`before_all` skipped the run, and no item was started."""
    FAILED = "failed"
    """A stage or an item failed."""
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """A predecessor failed, was canceled or is blocked. Rerunning the failed or canceled run unblocks this run."""


ENDED = frozenset(
    {RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.BLOCKED}
)
SUCCEEDED = frozenset({RunStatus.DONE, RunStatus.SKIPPED})
"""Statuses that always release successors. For other end statuses, the run's `OnFailure` policy decides."""
RUN_TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.WAITING: frozenset({RunStatus.READY, RunStatus.BLOCKED, RunStatus.CANCELLED}),
    RunStatus.READY: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset({RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.BLOCKED: frozenset({RunStatus.WAITING}),
}
"""Permitted transitions. The store rejects all others (`parley_run_transition`)."""


class Phase(StrEnum):
    """A stage of a claimed run."""

    BEFORE = "before_all"
    ITEMS = "items"
    AFTER = "after_all"


class ItemStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class RedoStatus(StrEnum):
    """The result of a run's request to be rerun."""

    NONE = "none"
    SCHEDULED = "scheduled"
    CEILING_REACHED = "ceiling_reached"


class Urgency(StrEnum):
    """A run's priority while turns wait for workers (IF-14)."""

    URGENT = "urgent"
    """A turn waits for the run."""
    BACKGROUND = "background"


class OnFailure(StrEnum):
    """The policy for the successors of a failed run."""

    BLOCK = "block"
    """The successors are blocked and record the reason."""
    RELEASE = "release"
    """The successors run anyway."""


@dataclass(frozen=True, slots=True)
class Node:
    """The part of a run's state that affects its successors."""

    name: str
    status: RunStatus
    successors: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.BLOCK

    @property
    def blocks_successors(self) -> bool:
        """Return whether the node prevents its successors from running."""
        failed = self.status in ENDED - SUCCEEDED and self.on_failure is OnFailure.BLOCK
        return failed or self.status is RunStatus.BLOCKED


def unblock(nodes: dict[str, Node], again: str) -> dict[str, int]:
    """Return the nodes that a rerun of `again` unblocks, each with its number of unfinished predecessors.

    `nodes`: all nodes of the graph by name; `nodes[again]` has the status of the rerun. Nodes that are also
    blocked by another failure stay blocked.
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
    """Return the redo count for a manual rerun, or None if no run in the chain succeeded (IF-5).

    `succeeded`: the redo counts of the chain's successful runs. A failed rerun does not advance the count.
    """
    return (succeeded[-1] or 0) + 1 if succeeded else None
