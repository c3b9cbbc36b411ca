"""Background-run responses."""

from pydantic import Field, JsonValue

from gateway.responses.common import ResponseModel, Timestamp
from orchestrator.ports.runs.status import ItemStatus, Phase, RedoStatus, RunStatus


class Progress(ResponseModel):
    total: int
    done: int
    skipped: int
    failed: int


class Run(ResponseModel):
    run_id: str
    tenant_id: str
    flow: str
    status: RunStatus
    phase: Phase
    chain_id: str
    graph_id: str
    session_id: str | None
    redo_count: int | None
    redo: RedoStatus
    progress: Progress
    closing: JsonValue
    reason: str | None
    error: str | None
    attempts: int
    created_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    successors: list[str]


class RunInChain(Run):
    chain: list[str]


class RunBacklog(ResponseModel):
    """A session's backlog of maintenance runs. `session_id`: null for runs without a session."""

    session_id: str | None
    runs: int
    oldest_s: float


class Backlog(ResponseModel):
    """Deferred maintenance.

    `turn_wait_s`: 95th percentile of the time that recent turns waited for a worker.
    """

    turn_wait_s: float
    sessions: list[RunBacklog]


class StartedRun(ResponseModel):
    run_id: str | None = Field(description="Run of the named flow; null for a trigger.")
    runs: dict[str, str] = Field(description="The run of each flow.")
    joined: bool = Field(default=False, description="A run was already active on the session.")


class RunItem(ResponseModel):
    position: int
    status: ItemStatus
    input: JsonValue
    output: JsonValue
    reason: str | None
    error: str | None
    attempts: int
