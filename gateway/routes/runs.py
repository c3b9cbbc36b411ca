"""Runs of Internal flows: start, list, look item by item, cancel, redo (IF-16)."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from gateway import run_shapes as shapes
from gateway.doors import TheDoors, TheTenant
from gateway.schemas import NewRunBody
from orchestrator.ports.runs.records import ItemRecord, RunRecord
from orchestrator.ports.runs.status import RunStatus
from orchestrator.types import JsonObject, SessionId

router = APIRouter(prefix="/v1/runs", tags=["runs"])

Limit = Annotated[int, Query(ge=1, le=1000)]


def run_object(record: RunRecord) -> JsonObject:
    """A run as it is shown; times are ISO 8601."""
    body = asdict(record)
    for name in ("created_at", "started_at", "finished_at"):
        body[name] = None if body[name] is None else body[name].isoformat()
    return body


def item_object(record: ItemRecord) -> JsonObject:
    return asdict(record)


@router.post("", status_code=HTTPStatus.ACCEPTED, responses={202: {"model": shapes.StartedRun}})
async def start_run(body: NewRunBody, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Start a flow; one that is at work on the session already is joined. Accepted means stored."""
    session_id = None if body.session_id is None else SessionId(body.session_id)
    if session_id is not None:
        await doors.sessions.get(tenant, session_id)
    run = doors.flows.new_run(
        body.flow,
        inputs=tuple(body.inputs),
        options=body.options,
        parameters=body.parameters,
        tenant_id=tenant,
        session_id=session_id,
    )
    started = await doors.runs.start((run,))
    await doors.send_runs(started)
    return {"run_id": started.runs[body.flow], "joined": started.joined}


@router.get("", responses={200: {"model": list[shapes.Run]}})
async def list_runs(
    doors: TheDoors,
    tenant: TheTenant,
    session_id: SessionId | None = None,
    flow: str | None = None,
    status: RunStatus | None = None,
    limit: Limit = 100,
) -> list[JsonObject]:
    """Newest first."""
    found = await doors.runs.list(tenant, session_id=session_id, flow=flow, status=status, limit=limit)
    return [run_object(record) for record in found]


@router.get("/debt", responses={200: {"model": shapes.HousekeepingDebt}})
async def show_debt(doors: TheDoors, tenant: TheTenant, limit: Limit = 100) -> JsonObject:
    """Housekeeping that is due and put off, by session, the oldest first (IF-14)."""
    debt = await doors.load.housekeeping_debt(tenant, limit=limit)
    wait_s = await doors.load.turn_wait_s()
    return {"turn_wait_s": round(wait_s, 3), "sessions": [asdict(entry) for entry in debt]}


@router.get("/{run_id}", responses={200: {"model": shapes.RunInChain}})
async def show_run(run_id: str, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """A run, with the runs of its chain in order."""
    record = await doors.runs.get(tenant, run_id)
    chain = await doors.runs.chain(tenant, record.chain_id)
    return {**run_object(record), "chain": [one.run_id for one in chain]}


@router.get("/{run_id}/items", responses={200: {"model": list[shapes.RunItem]}})
async def list_items(
    run_id: str,
    doors: TheDoors,
    tenant: TheTenant,
    after: Annotated[int, Query(ge=-1)] = -1,
    limit: Limit = 100,
) -> list[JsonObject]:
    """Items by position, from the one after `after`."""
    await doors.runs.get(tenant, run_id)
    found = await doors.runs.items(tenant, run_id, after=after, limit=limit)
    return [item_object(record) for record in found]


@router.post("/{run_id}/cancel", responses={200: {"model": shapes.Run}})
async def cancel_run(run_id: str, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """End a run; what it recorded stays, what depends on it is left unrun."""
    return run_object(await doors.runs.cancel(tenant, run_id))


@router.post("/{run_id}/redo", status_code=HTTPStatus.ACCEPTED, responses={202: {"model": shapes.StartedRun}})
async def redo_run(run_id: str, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Run it once more, with the inputs and options of its chain."""
    started = await doors.runs.redo(tenant, run_id)
    await doors.send_runs(started)
    (new_run_id,) = started.runs.values()
    return {"run_id": new_run_id}
