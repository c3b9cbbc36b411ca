"""Turns: submit, wait, look, cancel, retry, drop."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from gateway import shapes
from gateway.doors import TheDoors, TheTenant
from orchestrator.errors import InvalidInput
from orchestrator.turns.request import TurnRequest
from orchestrator.turns.result import turn_object
from orchestrator.turns.turn import FINISHED, Submission, TurnStatus
from orchestrator.types import JsonObject, SessionId, TurnId

router = APIRouter(prefix="/v1", tags=["turns"])

MAX_WAIT_S = 300
Wait = Annotated[float | None, Query(ge=0, le=MAX_WAIT_S)]
KeyHeader = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]


@router.post(
    "/sessions/{session_id}/turns",
    status_code=HTTPStatus.ACCEPTED,
    responses={
        200: {"model": shapes.Turn, "description": "With `wait`: the finished turn."},
        202: {"model": shapes.Turn | shapes.Receipt, "description": "Accepted; not finished yet."},
    },
)
async def submit_turn(
    session_id: SessionId,
    body: TurnRequest,
    doors: TheDoors,
    tenant: TheTenant,
    response: Response,
    wait: Wait = None,
    key: KeyHeader = None,
) -> JsonObject:
    """Accept a turn: 202 with its place in the queue, or with `wait` 200 with the finished turn."""
    if key and body.idempotency_key and key != body.idempotency_key:
        raise InvalidInput("The header and the body name different keys.", field="idempotency_key")
    receipt = await doors.inbox.submit(
        Submission(
            session_id=session_id,
            input=body.turn_input(),
            tenant_id=tenant,
            idempotency_key=body.idempotency_key or key,
            sequence=body.sequence,
            if_busy=body.if_busy,
        )
    )
    if receipt.status not in FINISHED:
        await doors.wakeup.offer(session_id)
    if wait is None:
        return {
            "turn_id": receipt.turn_id,
            "seq": receipt.seq,
            "status": receipt.status.value,
            "position": receipt.position,
        }
    return await _waited(doors, tenant, session_id, receipt.turn_id, wait, response)


async def _waited(
    doors: TheDoors,
    tenant: TheTenant,
    session_id: SessionId,
    turn_id: TurnId,
    wait_s: float,
    response: Response,
) -> JsonObject:
    record = await doors.wait(tenant, session_id, turn_id, wait_s)
    done = record.status in FINISHED
    response.status_code = HTTPStatus.OK if done else HTTPStatus.ACCEPTED
    return turn_object(record)


@router.get("/turns", responses={200: {"model": list[shapes.Turn]}})
async def list_turns(
    doors: TheDoors,
    tenant: TheTenant,
    status: TurnStatus | None = None,
    session_id: SessionId | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[JsonObject]:
    """Turns of all sessions or of one, newest first; with `status=quarantined` those that need somebody."""
    records = await doors.inbox.turns(tenant, session_id=session_id, status=status, limit=limit)
    return [turn_object(record) for record in records]


@router.get(
    "/turns/{turn_id}",
    responses={
        200: {"model": shapes.Turn},
        202: {"model": shapes.Turn, "description": "With `wait`: not finished yet."},
    },
)
async def show_turn(
    turn_id: TurnId, doors: TheDoors, tenant: TheTenant, response: Response, wait: Wait = None
) -> JsonObject:
    """A turn as it is now, or with `wait` once it has finished, after so many seconds at most."""
    record = await doors.inbox.turn(tenant, turn_id)
    if wait is None or record.status in FINISHED:
        return turn_object(record)
    return await _waited(doors, tenant, record.session_id, turn_id, wait, response)


@router.get("/turns/{turn_id}/journal", responses={200: {"model": shapes.TurnJournal}})
async def read_turn_journal(turn_id: TurnId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """What a turn did, for operators: its calls of models and tools, and what it signalled (CO-6).

    Signals are there once the turn has ended: predictions, checks, calls, recovery, votes, templates.
    """
    record = await doors.inbox.turn(tenant, turn_id)
    steps = await doors.archive.journal(tenant, record.session_id, turn_id=turn_id, limit=1000)
    return {
        "turn_id": turn_id,
        "session_id": record.session_id,
        "status": record.status.value,
        "steps": steps[::-1],
        "signals": await doors.archive.signals(tenant, turn_id),
    }


@router.post("/turns/{turn_id}/cancel", responses={200: {"model": shapes.Turn}})
async def cancel_turn(turn_id: TurnId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Cancel a queued turn at once; ask a running one to stop."""
    return turn_object(await doors.inbox.cancel(tenant, turn_id))


@router.post("/turns/{turn_id}/retry", responses={200: {"model": shapes.Turn}})
async def retry_turn(turn_id: TurnId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Queue a quarantined turn again."""
    record = await doors.inbox.retry(tenant, turn_id)
    await doors.wakeup.offer(record.session_id)
    return turn_object(record)


@router.post("/turns/{turn_id}/drop", responses={200: {"model": shapes.Turn}})
async def drop_turn(turn_id: TurnId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Give a quarantined or queued turn up for good."""
    return turn_object(await doors.inbox.drop(tenant, turn_id))
