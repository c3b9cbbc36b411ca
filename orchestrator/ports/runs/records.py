"""Background runs, for operators and senders.

A run is a node in its trigger's graph. Only the store decides whether a run can start, which worker holds it and
which items have finished; messages are only hints (IF-8, IF-9). For the worker's side, see `work`.
"""

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.ports.runs.status import ItemStatus, OnFailure, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId, TurnId


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to start.

    Args:
        inputs: the trigger's inputs; `before_all` can replace them.
        options: the trigger's options; `before_all` can replace them.
        depends_on: names of flows in the same graph that must end first.
        flight_key: a key that at most one unfinished run can have (IF-11).
        after: the ID of an existing run that must end first.
        turn_id: the turn that triggered the run.
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
    urgency: Urgency = Urgency.BACKGROUND
    after: str | None = None
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Item counts of a run. `total`: all items, including unfinished items."""

    total: int = 0
    done: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def ended(self) -> int:
        return self.done + self.skipped + self.failed


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A background run.

    Args:
        chain_id: shared by a run and its reruns.
        graph_id: shared by the runs that were started together.
        redo_count: number of the rerun, from 1, or None for the first run.
        closing: the result of `after_all`.
        reason: why the run was skipped or blocked.
        error: why the run failed.
        successors: IDs of the runs that wait for this run.
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
    """An item of a run. `reason`: why the item was skipped. `error`: why the item failed."""

    position: int
    status: ItemStatus
    input: Json = None
    output: Json = None
    reason: str | None = None
    error: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Hint:
    """A message that tells workers to look at a run in `after_s` seconds, because it may have work."""

    run_id: str
    flow: str
    urgency: Urgency
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A run as a node of its graph, for sending Celery messages.

    Args:
        task_id: the Celery task that ends with the run.
        open_predecessors: the number of unfinished runs that the run waits for.
        parent: the Celery task of the predecessor in the same graph that ended last.
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
    """The runs of a started graph.

    Args:
        runs: run IDs by flow.
        joined: True if the runs already existed, started by the same message or with the same flight key.
    """

    runs: dict[str, str]
    hints: tuple[Hint, ...] = ()
    joined: bool = False
