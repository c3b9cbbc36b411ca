"""Sessions: create, list, look, close, step back."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from gateway import shapes
from gateway.doors import TheCaller, TheDoors, TheTenant
from gateway.schemas import NewSession, Rollback
from orchestrator.errors import Forbidden, InvalidInput
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.turn import SessionRecord
from orchestrator.types import Epoch, JsonObject, SessionId, UserId

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])

Limit = Annotated[int, Query(ge=1, le=1000)]


def session_object(record: SessionRecord) -> JsonObject:
    """A session as it is shown, with the standing of its flows when the state was read."""
    body: JsonObject = {
        "session_id": record.session_id,
        "tenant_id": record.tenant_id,
        "user_id": record.user_id,
        "domain": record.domain,
        "epoch": record.epoch,
        "status": "closed" if record.closed else "open",
        "pending": record.pending,
        "if_busy": record.if_busy.value,
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
    }
    if record.state is not None:
        body["state"] = record.state
    return body


@router.post("", status_code=HTTPStatus.CREATED, responses={201: {"model": shapes.Session}})
async def create_session(body: NewSession, doors: TheDoors, caller: TheCaller) -> JsonObject:
    """Create a session, or return the one that has this identifier already."""
    tenant = caller.tenant_id
    if body.tenant_id not in {None, tenant}:
        raise InvalidInput(f"You act for the tenant {tenant!r} only; leave this out.", field="tenant_id")
    if body.webhook is not None and caller.only_user is not None:
        raise Forbidden("Users cannot have their sessions told elsewhere: only backends and operators can.")
    record = await doors.sessions.create(
        tenant,
        doors.domains.resolve(body.domain),
        session_id=SessionId(body.session_id) if body.session_id else None,
        user_id=caller.acting_user(UserId(body.user_id) if body.user_id else None),
        if_busy=body.if_busy,
        webhook=body.webhook,
    )
    caller.require_owner(record.session_id, record.user_id)  # it may have been there
    return session_object(record)


@router.get("", responses={200: {"model": list[shapes.Session]}})
async def list_sessions(doors: TheDoors, caller: TheCaller, limit: Limit = 100) -> list[JsonObject]:
    """Newest activity first, without states; for a user his own."""
    found = await doors.sessions.list(caller.tenant_id, user_id=caller.only_user, limit=limit)
    return [session_object(record) for record in found]


@router.get("/{session_id}", responses={200: {"model": shapes.Session}})
async def show_session(session_id: SessionId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """A session with its working state: the flow stack, what is known, what is asked."""
    return session_object(await doors.sessions.get(tenant, session_id))


@router.delete("/{session_id}", responses={200: {"model": shapes.Session}})
async def close_session(session_id: SessionId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Close a session: it takes no further turns, and can still be read."""
    return session_object(await doors.sessions.close(tenant, session_id))


@router.get("/{session_id}/history", responses={200: {"model": list[shapes.Utterance]}})
async def read_history(
    session_id: SessionId,
    doors: TheDoors,
    tenant: TheTenant,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    limit: Limit = 200,
) -> list[JsonObject]:
    """What was said, oldest first: the last lines, or the last before the turn with this `seq`."""
    return await doors.sessions.history(tenant, session_id, before=before, limit=limit)


@router.get("/{session_id}/effects", responses={200: {"model": list[shapes.Effect]}})
async def read_effects(
    session_id: SessionId, doors: TheDoors, tenant: TheTenant, limit: Limit = 200
) -> list[JsonObject]:
    """What tools did for this session: the ledger, oldest first."""
    return [_effect_object(entry) for entry in await doors.effects.list(tenant, session_id, limit=limit)]


def _effect_object(entry: LedgerEntry) -> JsonObject:
    return {
        "tool_id": entry.tool_id,
        "arguments": entry.arguments,
        "status": entry.status.value,
        "flow_id": entry.flow_id,
        "turn_id": entry.turn_id,
        "slots": entry.slots,
        "result": None if entry.result is None else entry.result.get("data"),
        "fingerprint": entry.fingerprint,
        "idempotency_key": entry.idempotency_key,
        "at": None if entry.at is None else entry.at.isoformat(),
    }


@router.get("/{session_id}/plan", responses={200: {"model": shapes.Plan}})
async def read_plan(session_id: SessionId, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """The session's latest plan: its steps, how far it is, and every revision of it."""
    return await doors.sessions.plan(tenant, session_id)


@router.get("/{session_id}/state", responses={200: {"model": shapes.State}})
async def read_state(
    session_id: SessionId,
    doors: TheDoors,
    tenant: TheTenant,
    epoch: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> JsonObject:
    """The working state now, or as it was after `epoch`."""
    if epoch is None:
        record = await doors.sessions.get(tenant, session_id)
        return {"epoch": record.epoch, "state": record.state}
    return {"epoch": epoch, "state": await doors.sessions.state_at(tenant, session_id, Epoch(epoch))}


@router.post("/{session_id}/rollback", responses={200: {"model": shapes.Session}})
async def roll_back(session_id: SessionId, body: Rollback, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Make an earlier state current again; the history is kept."""
    return session_object(await doors.sessions.rollback(tenant, session_id, Epoch(body.epoch)))
