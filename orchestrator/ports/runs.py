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
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId, TurnId


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
    """A predecessor failed; it never started. Redoing that one by hand lets it wait again."""


RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.WAITING: frozenset({RunStatus.READY, RunStatus.BLOCKED, RunStatus.CANCELLED}),
    RunStatus.READY: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset({RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.DONE: frozenset(),
    RunStatus.SKIPPED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.BLOCKED: frozenset({RunStatus.WAITING}),
}

ENDED = frozenset(
    {RunStatus.DONE, RunStatus.SKIPPED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.BLOCKED}
)
SUCCEEDED = frozenset({RunStatus.DONE, RunStatus.SKIPPED})
"""Successors of these may start."""


class OnFailure(StrEnum):
    """What becomes of a failed run's successors."""

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
    def stands_in_the_way(self) -> bool:
        """Whether what depends on it can never run as things are."""
        return self.status in ENDED - SUCCEEDED and self.on_failure is OnFailure.BLOCK


def unblock(nodes: dict[str, Node], again: str) -> dict[str, int]:
    """Blocked nodes that may wait again when `again` is run once more, with their open predecessors.

    `nodes` by name, `again` among them with the status of a run to come. A node that another failed
    one blocks as well stays blocked.
    """
    before: dict[str, list[str]] = {name: [] for name in nodes}
    for node in nodes.values():
        for successor in node.successors:
            before[successor].append(node.name)
    freed: dict[str, int] = {}
    waiting = [again]
    while waiting:
        for name in nodes[waiting.pop(0)].successors:
            blocked = nodes[name].status is RunStatus.BLOCKED and name not in freed
            if blocked and not any(nodes[one].stands_in_the_way and one not in freed for one in before[name]):
                freed[name] = 0
                waiting.append(name)
    for name in freed:
        freed[name] = sum(nodes[one].status not in ENDED or one in freed for one in before[name])
    return freed


def require_run_transition(present: RunStatus, wanted: RunStatus) -> None:
    """Raises IllegalTransition when a run cannot go from one status to the other."""
    if wanted not in RUN_TRANSITIONS[present]:
        raise IllegalTransition(f"A run that is {present} cannot become {wanted}.")


def count_by_hand(succeeded: list[int | None]) -> int | None:
    """The count of a run redone by hand, from the counts of its chain's runs that succeeded (IF-5).

    The last of them is the redo context that stayed: a rerun that failed is tried again under its own
    count. When none succeeded there is no chain yet, and the run begins anew.
    """
    return (succeeded[-1] or 0) + 1 if succeeded else None


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
    (IF-11). `after`: a run that is there already, and must have ended.
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
    after: str | None = None
    turn_id: TurnId | None = None
    """The turn that made it due."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it is shown. `reason`: why it was skipped or blocked; `error`: why it failed.

    `successors` are runs that wait for the end of this one.
    """

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
    successors: tuple[str, ...] = ()


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
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right to carry a run's phase out while `token` is current. `attempts` counts this one.

    `inputs` are there before the items, `items` after them.
    """

    facts: RunFacts
    token: int
    phase: Phase
    attempts: int
    inputs: tuple[Json, ...] = ()
    items: Progress = Progress()


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    position: int
    input: Json
    attempts: int


@dataclass(frozen=True, slots=True)
class ItemsClaim:
    """The right to end some items while `token` is current."""

    facts: RunFacts
    token: int
    items: tuple[ClaimedItem, ...]


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


@dataclass(frozen=True, slots=True)
class Started:
    """The runs of a graph, by flow, and hints for those that may begin.

    `joined`: they were there already, started by the same message or for the same flight key.
    """

    runs: dict[str, str]
    hints: tuple[Hint, ...] = ()
    joined: bool = False


class Recorded(StrEnum):
    """What writing the ends of items led to."""

    LOST = "lost"
    """The claim is no longer current; nothing was written."""
    MORE = "more"
    """Other items are unfinished."""
    ALL = "all"
    """No item is left: `after_all` may begin."""


class Runs(Protocol):
    """Runs as operators and senders see them."""

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        """Store the nodes of one graph, all or none. The same `key` is the same graph."""
        ...

    async def get(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        """Raises NotFound."""
        ...

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        flow: str | None = None,
        status: RunStatus | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        """Newest first."""
        ...

    async def chain(self, tenant_id: TenantId, chain_id: str) -> list[RunRecord]:
        """A run and its reruns, in order."""
        ...

    async def graph(self, tenant_id: TenantId, graph_id: str) -> list[RunRecord]:
        """Every run of a graph, reruns included, in the order in which they were added."""
        ...

    async def items(
        self, tenant_id: TenantId, run_id: str, *, after: int = -1, limit: int = 1000
    ) -> list[ItemRecord]:
        """Items by position, from the one after `after`."""
        ...

    async def cancel(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        """End a run that has not ended; its holders are fenced, its successors blocked."""
        ...

    async def redo(self, tenant_id: TenantId, run_id: str) -> Started:
        """Run a chain once more by hand. Raises NotFound, and Refused while it is at work."""
        ...


@dataclass(frozen=True, slots=True)
class Debt:
    """Housekeeping of a session that is due and put off: how many runs, and for how long the oldest."""

    session_id: SessionId | None
    runs: int
    oldest_s: float


class Pressure(Protocol):
    """Whether housekeeping should stand back (IF-14). Every method raises Unavailable."""

    async def turn_wait_s(self) -> float:
        """The 95th percentile of what turns of the last seconds waited for a worker."""
        ...

    async def housekeeping_debt(self, tenant_id: TenantId | None = None, *, limit: int = 100) -> list[Debt]:
        """What is put off, by session, the oldest first; of one tenant or all."""
        ...


class RunWork(Protocol):
    """Runs as workers see them. Every method that changes something is one transaction."""

    async def claim(self, run_id: str, config: JsonObject, *, waited_s: float = 0.0) -> RunClaim | None:
        """Take up `before_all` or `after_all`; `config` is kept with the run when it starts.

        `waited_s`: housekeeping that became ready later than so long ago is put off. None: nothing to do
        now, or somebody holds it.
        """
        ...

    async def begin_items(
        self, claim: RunClaim, inputs: tuple[Json, ...], options: JsonObject, data: Json
    ) -> bool:
        """`before_all` has ended: store the items. False: the claim is no longer current."""
        ...

    async def claim_items(self, run_id: str, *, waited_s: float = 0.0) -> ItemsClaim | None:
        """Take some unfinished items, unless as many holders as the run allows are at work already.

        `waited_s`: as in `claim`; items of housekeeping that waited long enough are taken one by one.
        """
        ...

    async def record_items(self, claim: ItemsClaim, ends: tuple[ItemEnd, ...], *, last: bool) -> Recorded:
        """Write what became of items, each once; `last` gives the claim back."""
        ...

    async def finish(self, claim: RunClaim, end: RunEnd) -> tuple[Hint, ...] | None:
        """End a run, release or block its successors, and add the next run of its chain.

        None: the claim is no longer current, nothing was written.
        """
        ...

    async def note_progress(self, run_id: str) -> tuple[int, JsonObject] | None:
        """Enter how far a run has come into its session's log; the number and payload of that event.

        Beginnings and ends are entered by themselves. None: it has no session.
        """
        ...

    async def outputs(self, run_id: str) -> list[Json]:
        """Outputs by position; None for items that were skipped."""
        ...

    async def renew(self) -> set[int]:
        """Prolong the claims of this worker; the tokens that are no longer current."""
        ...

    def give_up(self, token: int) -> None:
        """Stop prolonging a claim; what was not given back runs out, and another worker takes over."""
        ...

    async def sweep(self, *, limit: int = 500, waited_s: float = 0.0) -> tuple[Hint, ...]:
        """Free what dead or silent workers held, and name runs that a lost message left hanging.

        `waited_s`: as in `claim`.
        """
        ...
