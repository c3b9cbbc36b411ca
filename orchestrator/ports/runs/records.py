"""Background runs for operators and senders.

A run is a node of its trigger's graph. Only the store decides whether it can start, who holds it and which
items have ended; a message carries no rights (IF-8, IF-9). `work` has the worker's side.
"""

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.ports.runs.status import ItemStatus, OnFailure, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class NewRun:
    """A node to start.

    `inputs`, `options`: as given, before any `before_all_response`. `depends_on`: flows started together
    with it. `flight_key`: at most one unfinished run has it (IF-11). `after`: an existing run that must end
    first.
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
    """The turn that triggered it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Item counts by result; the rest of `total` is unfinished."""

    total: int = 0
    done: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def ended(self) -> int:
        """Return the number of finished items."""
        return self.done + self.skipped + self.failed


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run for display. `reason`: why it was skipped or blocked. `error`: why it failed.

    `successors`: runs that wait for it.
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
    redo: RedoStatus = RedoStatus.NONE
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
    """An item for display. `reason`: why it was skipped. `error`: why it failed."""

    position: int
    status: ItemStatus
    input: Json = None
    output: Json = None
    reason: str | None = None
    error: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Hint:
    """A run that may have work. `after_s`: delay."""

    run_id: str
    flow: str
    urgency: Urgency
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A run with the data that decides how a message carries it and its successors.

    `task_id`: the task that ends with the run. `open_predecessors`: how many runs it waits for. `parent`:
    the task of its last ended predecessor.
    """

    run_id: str
    flow: str
    urgency: Urgency
    task_id: str
    open_predecessors: int
    successors: tuple[str, ...]
    on_failure: OnFailure
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A graph's runs by flow, and hints for those that can start.

    `joined`: they already existed, for the same message or flight key.
    """

    runs: dict[str, str]
    hints: tuple[Hint, ...] = ()
    joined: bool = False
