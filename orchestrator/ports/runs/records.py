"""Runs of Internal flows as operators and senders see them.

A run is one node of its trigger's graph. Whether it may start, who holds it and which of its items
have ended is decided in the store and nowhere else; messages are hints (IF-8, IF-9). How a worker
takes a run up is in `work`.
"""

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.ports.runs.status import ItemStatus, OnFailure, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, TenantId, TurnId


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
class Progress:
    """Items by what became of them; the rest of `total` is unfinished."""

    total: int = 0
    done: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def ended(self) -> int:
        """How many items need no more work."""
        return self.done + self.skipped + self.failed


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
    """One item of a run as it is shown; `reason`: why it was skipped, `error`: why it failed."""

    position: int
    status: ItemStatus
    input: Json = None
    output: Json = None
    reason: str | None = None
    error: str | None = None
    attempts: int = 0


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

    `joined`: they were there already, started by the same message or for the same flight key. `waves`: all runs, wave
    after wave, of a graph that is a sequence or has fan-ins (`find_waves`); empty for others.
    """

    runs: dict[str, str]
    hints: tuple[Hint, ...] = ()
    joined: bool = False
    waves: tuple[tuple[Hint, ...], ...] = ()
