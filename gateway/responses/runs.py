from pydantic import Field

from gateway.responses.common import ResponseModel, response_of
from orchestrator.adapters.postgres.status import SessionBacklog
from orchestrator.ports.runs.records import ItemRecord, RunRecord


class Run(response_of(RunRecord)):
    """A background run. `reason`: why it was skipped or blocked. `error`: why it failed."""


class RunInChain(Run):
    chain: list[str]


class Backlog(ResponseModel):
    """The background runs that are due but not started, by session.

    `turn_wait_s`: 95th percentile of the time that recent turns waited for a worker, in seconds.
    """

    turn_wait_s: float
    sessions: list[SessionBacklog]


class StartedRun(ResponseModel):
    run_id: str | None = Field(description="ID of the flow's run, or null if a trigger was given.")
    runs: dict[str, str] = Field(description="Run IDs by flow name.")
    joined: bool = Field(default=False, description="Whether the runs already existed.")


class RunItem(response_of(ItemRecord)):
    """An item of a run. `reason`: why it was skipped. `error`: why it failed."""
