"""Start, list, show, cancel and redo background runs (IF-16)."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from gateway.dependencies import TheRuns, TheSessions, TheTenant
from gateway.schemas import ABSENT, GIVEN, Limit, ResponseModel, response_of
from internal_flows.start_request import read_start
from orchestrator.adapters.postgres.status import SessionBacklog
from orchestrator.ports.runs.records import ItemRecord, RunRecord
from orchestrator.ports.runs.status import RunStatus
from orchestrator.turns.submission import AnyJson, Identifier, RequestBody
from orchestrator.types import JsonObject, SessionId

router = APIRouter(prefix="/v1/runs", tags=["runs"])


_OPTIONS: JsonDict = {
    "type": "object",
    "properties": {
        "model": {"type": ["string", "null"]},
        "concurrency": {"type": "integer", "minimum": 1},
        "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
    },
    "additionalProperties": False,
}


class NewRunBody(RequestBody):
    """A request to start either a flow or all flows of a trigger, optionally for a session."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["flow"], "properties": {"flow": GIVEN, "trigger": ABSENT}},
                {
                    "required": ["trigger"],
                    "properties": {
                        "trigger": GIVEN,
                        "flow": ABSENT,
                        "inputs": {"maxItems": 0},
                        "options": {"maxProperties": 0},
                    },
                },
            ],
            "examples": [{"flow": "summarize_session", "session_id": "session_1"}],
        }
    )

    flow: Identifier | None = None
    trigger: Identifier | None = None
    session_id: Identifier | None = None
    inputs: Annotated[list[AnyJson], Field(max_length=100_000, default_factory=list[AnyJson])]
    options: Annotated[dict[str, AnyJson], WithJsonSchema(_OPTIONS)] = Field(
        default_factory=dict[str, AnyJson]
    )
    parameters: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])


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


@router.post("", status_code=HTTPStatus.ACCEPTED)
async def start_run(body: NewRunBody, runs: TheRuns, sessions: TheSessions, tenant: TheTenant) -> StartedRun:
    """Start a flow, or all flows of a trigger. The response is sent after the runs are stored.

    If the session already has an active run of the flow, the response contains its ID.
    """
    session_id = None if body.session_id is None else SessionId(body.session_id)
    if session_id is not None:
        await sessions.store.get(tenant, session_id)
    nodes = read_start({**body.model_dump(), "tenant_id": tenant}, runs.catalogue())
    started = await runs.start(nodes)
    run_id = None if body.flow is None else started.runs[body.flow]
    return StartedRun(run_id=run_id, runs=started.runs, joined=started.joined)


@router.get("", response_model=list[Run])
async def list_runs(
    runs: TheRuns,
    tenant: TheTenant,
    session_id: SessionId | None = None,
    flow: str | None = None,
    status: RunStatus | None = None,
    limit: Limit = 100,
) -> list[RunRecord]:
    """List runs, newest first."""
    return await runs.store.list(tenant, session_id=session_id, flow=flow, status=status, limit=limit)


@router.get("/backlog", response_model=Backlog)
async def show_backlog(runs: TheRuns, tenant: TheTenant, limit: Limit = 100) -> JsonObject:
    """List the sessions with deferred maintenance, longest deferred first."""
    waiting = await runs.load.backlog(tenant, limit=limit)
    return {"turn_wait_s": round(await runs.load.turn_wait_s(), 3), "sessions": waiting}


@router.get("/{run_id}", response_model=RunInChain)
async def show_run(run_id: str, runs: TheRuns, tenant: TheTenant) -> JsonObject:
    """Return a run. `chain`: IDs of the first run and all its reruns."""
    record = await runs.store.get(tenant, run_id)
    chain = await runs.store.chain(tenant, record.chain_id)
    return {**asdict(record), "chain": [one.run_id for one in chain]}


@router.get("/{run_id}/items", response_model=list[RunItem])
async def list_items(
    run_id: str,
    runs: TheRuns,
    tenant: TheTenant,
    after: Annotated[int, Query(ge=-1)] = -1,
    limit: Limit = 100,
) -> list[ItemRecord]:
    """List a run's items by position, starting after position `after`."""
    await runs.store.get(tenant, run_id)
    return await runs.store.items(tenant, run_id, after=after, limit=limit)


@router.post("/{run_id}/cancel", response_model=Run)
async def cancel_run(run_id: str, runs: TheRuns, tenant: TheTenant) -> RunRecord:
    """Cancel a run. Its results are kept, and dependent runs don't start."""
    return await runs.store.cancel(tenant, run_id)


@router.post("/{run_id}/redo", status_code=HTTPStatus.ACCEPTED)
async def redo_run(run_id: str, runs: TheRuns, tenant: TheTenant) -> StartedRun:
    """Rerun a run's flow with the inputs and options of the first run in its chain.

    Returns 409 while the run or one of its reruns is unfinished, or another run of the flow is active.
    """
    started = await runs.store.redo(tenant, run_id)
    await runs.notify_workers(started)
    (new_run_id,) = started.runs.values()
    return StartedRun(run_id=new_run_id, runs=started.runs)
