"""Runs of Internal flows as they are stored: records, statuses, claims, and the port to the store.

A run is one node of its trigger's graph. Whether it may start, who holds it and which of its items
have ended is decided here and nowhere else; messages are hints (IF-8, IF-9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.errors import IllegalTransition
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId


class RunStatus(StrEnum):
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
    """A predecessor failed; it never started."""


RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.WAITING: frozenset({RunStatus.READY, RunStatus.BLOCKED, RunStatus.CANCELLED}),
    RunStatus.READY: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset(
        {RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED}
    ),
    RunStatus.DONE: frozenset(),
    RunStatus.SKIPPED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.BLOCKED: frozenset(),
}

ENDED = frozenset(status for status, following in RUN_TRANSITIONS.items() if not following)
SUCCEEDED = frozenset({RunStatus.DONE, RunStatus.SKIPPED})
"""Successors of these may start."""


def require_run_transition(present: RunStatus, wanted: RunStatus) -> None:
    """Raises IllegalTransition when a run cannot go from one status to the other."""
    if wanted not in RUN_TRANSITIONS[present]:
        raise IllegalTransition(f"A run that is {present} cannot become {wanted}.")


class Phase(StrEnum):
    """What a claimed run does next."""

    BEFORE = "before_all"
    ITEMS = "items"
    AFTER = "after_all"


class ItemStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class OnFailure(StrEnum):
    """What becomes of a failed run's successors."""

    BLOCK = "block"
    """They are left unrun, with the reason."""
    RELEASE = "release"
    """They run all the same."""


class RedoStanding(StrEnum):
    """How a run's wish to be run again was answered."""

    NONE = "none"
    SCHEDULED = "scheduled"
    CEILING_REACHED = "ceiling_reached"


class Urgency(StrEnum):
    URGENT = "urgent"
    """A turn waits for it."""
    HOUSEKEEPING = "housekeeping"


@dataclass(frozen=True, slots=True)
class Progress:
    """Items by what became of them; the rest of `total` is unfinished."""

    total: int = 0
    done: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def ended(self) -> int:
        return self.done + self.skipped + self.failed


@dataclass(frozen=True, slots=True)
class NewRun:
    """One node to be started.

    `inputs` and `options` as they were given, before any `before_all_response`. `depends_on` names
    flows among the runs that are started together. `flight_key`: at most one unfinished run has it
    (IF-11). `redo_ceiling` None: no ceiling.
    """

    flow: str
    inputs: tuple[Json, ...] = ()
    options: JsonObject = field(default_factory=dict[str, Json])
    parameters: JsonObject = field(default_factory=dict[str, Json])
    depends_on: tuple[str, ...] = ()
    tenant_id: TenantId = DEFAULT_TENANT
    session_id: SessionId | None = None
    flight_key: str | None = None
    on_failure: OnFailure = OnFailure.BLOCK
    urgency: Urgency = Urgency.HOUSEKEEPING


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it is shown. `reason`: why it was skipped or blocked; `error`: why it failed."""

    run_id: str
    tenant_id: TenantId
    flow: str
    status: RunStatus
    phase: Phase
    chain_id: str
    graph_id: str
    session_id: SessionId | None = None
    redo_count: int | None = None
    redo: RedoStanding = RedoStanding.NONE
    progress: Progress = Progress()
    closing: Json = None
    reason: str | None = None
    error: str | None = None
    attempts: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ItemRecord:
    position: int
    status: ItemStatus
    input: Json = None
    output: Json = None
    reason: str | None = None
    error: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the stages of a run are told, as stored. `options` and `data` after `before_all`."""

    run_id: str
    tenant_id: TenantId
    session_id: SessionId | None
    flow: str
    redo_count: int | None
    parameters: JsonObject
    options: JsonObject
    config: JsonObject
    data: Json
    urgency: Urgency = Urgency.HOUSEKEEPING


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right to carry a run's phase out while `token` is current. `inputs` only before the items."""

    facts: RunFacts
    token: int
    phase: Phase
    inputs: tuple[Json, ...] = ()
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ItemsClaim:
    """The right to end some items while `token` is current: pairs of position and input."""

    facts: RunFacts
    token: int
    items: tuple[tuple[int, Json], ...]


@dataclass(frozen=True, slots=True)
class ItemEnd:
    position: int
    status: ItemStatus
    output: Json = None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. `redo_count`: the next run's place in the chain when one is to follow."""

    status: RunStatus
    closing: Json = None
    reason: str | None = None
    error: str | None = None
    redo: RedoStanding = RedoStanding.NONE
    redo_count: int | None = None
    redo_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Hint:
    """A run that may have something to do. `after_s`: not earlier."""

    run_id: str
    flow: str
    phase: Phase
    urgency: Urgency
    after_s: float = 0.0


class Runs(Protocol):
    """The store. Every method that changes something is one transaction."""

    async def start(self, runs: tuple[NewRun, ...]) -> list[Hint]:
        """Store the nodes of one graph; hints for those without predecessors.

        When an unfinished run holds one of the flight keys, nothing is started and hints for nothing
        are returned: the trigger is coalesced with the run that is there.
        """
        ...

    async def claim(self, run_id: str, config: JsonObject) -> RunClaim | None:
        """Take up `before_all` or `after_all`; `config` is kept with the run when it starts.

        None: nothing to do now, or somebody holds it.
        """
        ...

    async def begin_items(
        self, claim: RunClaim, inputs: tuple[Json, ...], options: JsonObject, data: Json
    ) -> bool:
        """`before_all` has ended: store the items. False: the claim is no longer current."""
        ...

    async def claim_items(self, run_id: str, *, limit: int, concurrency: int) -> ItemsClaim | None:
        """Take up to `limit` unfinished items, unless `concurrency` holders are at work already."""
        ...

    async def record_items(self, claim: ItemsClaim, ends: tuple[ItemEnd, ...]) -> bool:
        """Write what became of items, each once. False: the claim is no longer current."""
        ...

    async def finish(self, claim: RunClaim, end: RunEnd) -> list[Hint] | None:
        """End a run, release or block its successors, and add the next run of its chain.

        None: the claim is no longer current, nothing was written.
        """
        ...

    async def outputs(self, run_id: str) -> list[Json]:
        """Outputs by position; None for items that were skipped."""
        ...
