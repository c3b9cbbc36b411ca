"""The states of a run of an Internal flow, the transitions between them, and what the shape of a graph decides.

Rules over statuses alone; where they are stored is behind the ports `runs` and `run_work`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """The status of a run."""

    WAITING = "waiting"
    """Has open predecessors."""
    READY = "ready"
    """May be claimed, once its time has come."""
    RUNNING = "running"
    """Was claimed; its stages are at work or wait for a worker."""
    DONE = "done"
    SKIPPED = "skipped"
    """`before_all` said so; no item was started."""
    FAILED = "failed"
    """A stage or an item failed."""
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """A predecessor failed; it never started. Redoing that one by hand lets it wait again."""


ENDED = frozenset(
    {RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.BLOCKED}
)
SUCCEEDED = frozenset({RunStatus.DONE, RunStatus.SKIPPED})
"""Successors of these may start."""
RUN_TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.WAITING: frozenset({RunStatus.READY, RunStatus.BLOCKED, RunStatus.CANCELLED}),
    RunStatus.READY: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset({RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.BLOCKED: frozenset({RunStatus.WAITING}),
}
"""What may follow each status, nothing where it is not named. The store refuses all else (`parley_run_transition`)."""


class Phase(StrEnum):
    """The stages that a claimed run is at."""

    BEFORE = "before_all"
    ITEMS = "items"
    AFTER = "after_all"


class ItemStatus(StrEnum):
    """How one item of a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class RedoStatus(StrEnum):
    """How a run's wish to be run again was answered."""

    NONE = "none"
    SCHEDULED = "scheduled"
    CEILING_REACHED = "ceiling_reached"


class Urgency(StrEnum):
    """How a run is treated while turns wait (IF-14)."""

    URGENT = "urgent"
    """A turn waits for it."""
    HOUSEKEEPING = "housekeeping"


class OnFailure(StrEnum):
    """The fate of a failed run's successors."""

    BLOCK = "block"
    """They are left unrun, with the reason."""
    RELEASE = "release"
    """They run all the same."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph as it stands: what decides whether others may follow it."""

    name: str
    status: RunStatus
    successors: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.BLOCK

    @property
    def blocks_successors(self) -> bool:
        """True when its successors can never run as things are."""
        failed = self.status in ENDED - SUCCEEDED and self.on_failure is OnFailure.BLOCK
        return failed or self.status is RunStatus.BLOCKED


def unblock(nodes: dict[str, Node], again: str) -> dict[str, int]:
    """Blocked nodes that may wait again when `again` is run once more, with their open predecessors.

    `nodes` by name, `again` among them with the status of a run to come. A node that another failed
    one blocks as well stays blocked.
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


def find_waves(predecessors: Mapping[str, Collection[str]]) -> tuple[tuple[str, ...], ...]:
    """The waves of a graph that is a sequence, or a sequence with fan-ins; empty for all other shapes.

    Each node depends on the whole wave before its own. Of two neighbours one is a single node, and so is the last wave:
    these are the shapes that Celery's `chain` and `chord` carry without waiting for more than the edges demand.
    """
    left, before = dict(predecessors), set[str]()
    waves: list[tuple[str, ...]] = []
    while left:
        wave = tuple(name for name, needed in left.items() if set(needed) == before)
        if not wave or (len(wave) > 1 and len(before) > 1):
            return ()
        waves.append(wave)
        before = set(wave)
        left = {name: needed for name, needed in left.items() if name not in before}
    return tuple(waves) if len(waves) > 1 and len(before) == 1 else ()


def count_by_hand(succeeded: list[int | None]) -> int | None:
    """The count of a run redone by hand, from the counts of its chain's runs that succeeded (IF-5).

    The last of them is the redo context that stayed: a rerun that failed is tried again under its own
    count. When none succeeded there is no chain yet, and the run begins anew.
    """
    return (succeeded[-1] or 0) + 1 if succeeded else None
