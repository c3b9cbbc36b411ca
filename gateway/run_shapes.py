"""What answers about runs of Internal flows look like, for the OpenAPI document (see `shapes`)."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, JsonValue

from gateway.shapes import Shape
from orchestrator.ports.runs.status import ItemStatus, Phase, RedoStatus, RunStatus


class Progress(Shape):
    total: int
    done: int
    skipped: int
    failed: int


class Run(Shape):
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
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    successors: list[str]


class RunInChain(Run):
    chain: list[str]


class RunDebt(Shape):
    """`session_id`: null for runs without a session."""

    session_id: str | None
    runs: int
    oldest_s: float


class HousekeepingDebt(Shape):
    """`turn_wait_s`: what turns of the last seconds waited for a worker, the 95th percentile."""

    turn_wait_s: float
    sessions: list[RunDebt]


class StartedRun(Shape):
    run_id: str
    joined: bool = Field(default=False, description="It was at work on the session already.")


class RunItem(Shape):
    position: int
    status: ItemStatus
    input: JsonValue
    output: JsonValue
    reason: str | None
    error: str | None
    attempts: int
