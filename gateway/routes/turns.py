"""Turns: submit, wait, read, cancel."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Response

from gateway.dependencies import TheSessions, TheTenant, TheTurns
from gateway.parameters import Limit, Wait
from gateway.responses.common import documented, format_time
from gateway.responses.turns import Receipt, Turn, TurnJournal
from orchestrator.errors import Refused
from orchestrator.turns.submission import TurnRequest
from orchestrator.turns.turn import FINISHED, TurnStatus, turn_object
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

router = APIRouter(prefix="/v1", tags=["turns"])

KeyHeader = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]


@router.post(
    "/sessions/{session_id}/turns",
    status_code=HTTPStatus.ACCEPTED,
    responses={
        200: {"model": Turn, "description": "With `wait`: the finished turn."},
        202: {"model": Turn | Receipt, "description": "Accepted; not finished yet."},
    },
)
async def submit_turn(
    session_id: SessionId,
    body: TurnRequest,
    turns: TheTurns,
    tenant: TheTenant,
    response: Response,
    wait: Wait = None,
    key: KeyHeader = None,
) -> JsonObject:
    """Accept a turn: 202 with its place in the queue, or with `wait` 200 with the finished turn."""
    if key and body.idempotency_key and key != body.idempotency_key:
        raise Refused("The header and the body name different idempotency keys: send one of them.")
    receipt = await turns.submit(body.to_submission(session_id, tenant, idempotency_key=key))
    if wait is None:
        return Receipt.model_validate(receipt).model_dump()
    return await _waited(turns, tenant, session_id, receipt.turn_id, wait, response)


async def _waited(
    turns: TheTurns,
    tenant: TenantId,
    session_id: SessionId,
    turn_id: TurnId,
    wait_s: float,
    response: Response,
) -> JsonObject:
    record = await turns.wait(tenant, session_id, turn_id, wait_s)
    done = record.status in FINISHED
    response.status_code = HTTPStatus.OK if done else HTTPStatus.ACCEPTED
    return turn_object(record)


@router.get("/turns", responses=documented(list[Turn]))
async def list_turns(
    turns: TheTurns,
    tenant: TheTenant,
    status: TurnStatus | None = None,
    session_id: SessionId | None = None,
    limit: Limit = 100,
) -> list[JsonObject]:
    """Turns of all sessions or of one, newest first; with `status=quarantined` those that need somebody."""
    records = await turns.inbox.turns(tenant, session_id=session_id, status=status, limit=limit)
    return [turn_object(record) for record in records]


@router.get(
    "/turns/{turn_id}",
    responses={
        200: {"model": Turn},
        202: {"model": Turn, "description": "With `wait`: not finished yet."},
    },
)
async def show_turn(
    turn_id: TurnId, turns: TheTurns, tenant: TheTenant, response: Response, wait: Wait = None
) -> JsonObject:
    """A turn as it is now, or with `wait` once it has finished, after so many seconds at most."""
    record = await turns.inbox.turn(tenant, turn_id)
    if wait is None or record.status in FINISHED:
        return turn_object(record)
    return await _waited(turns, tenant, record.session_id, turn_id, wait, response)


@router.get("/turns/{turn_id}/journal", responses=documented(TurnJournal))
async def read_turn_journal(
    turn_id: TurnId, turns: TheTurns, sessions: TheSessions, tenant: TheTenant
) -> JsonObject:
    """Show operators what a turn did: its calls of models and tools, and what it signalled (CO-6).

    Signals are there once the turn has ended: predictions, checks, calls, recovery, votes, templates.
    """
    record = await turns.inbox.turn(tenant, turn_id)
    steps = await sessions.archive.journal(tenant, record.session_id, turn_id=turn_id, limit=1000)
    return {
        "turn_id": turn_id,
        "session_id": record.session_id,
        "status": record.status,
        "started_at": format_time(record.started_at),
        "finished_at": format_time(record.finished_at),
        "steps": steps[::-1],
        "signals": await sessions.archive.signals(tenant, turn_id),
    }


@router.post("/turns/{turn_id}/cancel", responses=documented(Turn))
async def cancel_turn(turn_id: TurnId, turns: TheTurns, tenant: TheTenant) -> JsonObject:
    """Cancel a queued turn at once; ask a running one to stop."""
    return turn_object(await turns.inbox.cancel(tenant, turn_id))
