"""A session's past turns with their times, its frames, exports, scratchpad and journal."""

import time
from contextlib import suppress
from datetime import datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, JsonValue

from gateway.auth.disclosure import turn_for
from gateway.auth.rate_limits import count_failure
from gateway.dependencies import SessionServices, TheAccess, TheCaller, TheSessions, TheTenant, TheTurns
from gateway.routes.turns import JournalStep, Turn
from gateway.schemas import Before, JsonMap, Limit, ResponseModel, Timestamp, documented, format_time
from orchestrator.domain.export_links import read_link
from orchestrator.errors import NotFound
from orchestrator.ports.access import acting_tenant
from orchestrator.ports.memory.scratchpad import EntryKind
from orchestrator.turns.turn import TurnKind, TurnRecord, TurnStatus, turn_object
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

router = APIRouter(prefix="/v1", tags=["sessions"])


class TimedTurn(Turn):
    kind: TurnKind
    action: JsonMap | None = Field(description="The clicked action, if there is no text.")
    attempts: int
    accepted_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    waited_ms: float | None
    ran_ms: float | None


class Frame(ResponseModel):
    frame_id: str
    flow_id: str
    turn_id: str
    display_type: str
    display_name: str
    data: JsonValue
    source: list[str]
    table_id: str | None
    rows: int | None
    at: Timestamp


class FramePage(ResponseModel):
    frame_id: str
    page: int
    pages: int
    row_count: int
    rows: list[JsonValue]


class Note(ResponseModel):
    entry_id: str
    flow: str
    origin: str
    kind: EntryKind
    text: str | None
    data: JsonValue
    epoch: int
    labels: list[str]
    at: float


_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def timed_turn(record: TurnRecord) -> JsonObject:
    """Return the turn object with the additional members of `TimedTurn`."""
    return {
        **turn_object(record),
        "kind": record.input.kind.value,
        "action": record.input.action,
        "attempts": record.attempts,
        "accepted_at": format_time(record.accepted_at),
        "started_at": format_time(record.started_at),
        "finished_at": format_time(record.finished_at),
        "waited_ms": _between_ms(record.accepted_at, record.started_at),
        "ran_ms": _between_ms(record.started_at, record.finished_at),
    }


def _between_ms(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else round((end - begin).total_seconds() * 1000, 3)


@router.get("/sessions/{session_id}/turns", responses=documented(list[TimedTurn]))
async def list_session_turns(
    session_id: SessionId,
    turns: TheTurns,
    sessions: TheSessions,
    caller: TheCaller,
    status: TurnStatus | None = None,
    before: Before = None,
    limit: Limit = 50,
) -> list[JsonObject]:
    """List a session's turns with their times, newest first. Use `before` for the next page."""
    tenant = caller.tenant_id
    records = await turns.inbox.turns(
        tenant, session_id=session_id, status=status, before=before, limit=limit
    )
    if not records:
        await sessions.store.get(tenant, session_id)
    return [turn_for(caller, timed_turn(record)) for record in records]


@router.get("/sessions/{session_id}/frames", responses=documented(list[Frame]))
async def list_frames(session_id: SessionId, sessions: TheSessions, tenant: TheTenant) -> list[JsonObject]:
    """List the newest frame of each flow, newest first."""
    return await sessions.archive.frames(tenant, session_id)


@router.get("/sessions/{session_id}/frames/{frame_id}/page/{number}", responses=documented(FramePage))
async def read_frame_page(
    session_id: SessionId,
    frame_id: str,
    number: Annotated[int, Path(ge=1, le=2**31)],
    sessions: TheSessions,
    tenant: TheTenant,
) -> JsonObject:
    """Return a page of a frame's table. Pages are numbered from 1. The block's `page_rows` sets the rows per page."""
    session = await sessions.store.get(tenant, session_id)
    frame = await sessions.archive.frame(tenant, session_id, frame_id)
    return await sessions.pages.page(session, frame, number)


@router.get(
    "/sessions/{session_id}/exports/{export_id}", response_class=Response, responses={200: {"content": _FILE}}
)
async def read_export(
    session_id: SessionId, export_id: str, sessions: TheSessions, tenant: TheTenant
) -> Response:
    """Download a table that was exported in the session."""
    return _as_file(await _find_export(sessions, tenant, session_id, export_id))


@router.get("/exports/{token}", response_class=Response, responses={200: {"content": _FILE}})
async def read_signed_export(
    token: str, sessions: TheSessions, access: TheAccess, request: Request
) -> Response:
    """Download an export through the signed path in an answer, until the path expires."""
    try:
        return _as_file(await _redeem(token, sessions))
    except NotFound:
        await count_failure(access, request)
        raise


async def _redeem(token: str, sessions: SessionServices) -> JsonObject:
    """Return the export that a signed path names. Raises NotFound if the path is invalid or has expired."""
    read = read_link(token)
    if read is not None and read[0].expires_at > time.time():
        link, signature = read
        acting_tenant.set(link.tenant_id)
        with suppress(NotFound):
            found = await _find_export(sessions, link.tenant_id, link.session_id, link.export_id)
            if link.is_signed(signature, found["key"]):
                return found
    raise NotFound("export", "invalid or expired path")


async def _find_export(
    sessions: SessionServices, tenant: TenantId, session_id: SessionId, export_id: str
) -> JsonObject:
    session = await sessions.store.get(tenant, session_id)
    return await sessions.pages.export(session, export_id)


def _as_file(found: JsonObject) -> Response:
    disposition = attach(f"{found['name']}.{found['format']}")
    return Response(
        found["text"], media_type="application/octet-stream", headers={"Content-Disposition": disposition}
    )


def attach(name: str) -> str:
    """Return a Content-Disposition header for any file name (RFC 6266)."""
    plain = quote(name, safe="")
    return f'attachment; filename="{name}"' if plain == name else f"attachment; filename*=UTF-8''{plain}"


@router.get("/sessions/{session_id}/scratchpad", responses=documented(list[Note]))
async def read_scratchpad(
    session_id: SessionId,
    sessions: TheSessions,
    tenant: TheTenant,
    kind: Annotated[list[EntryKind] | None, Query()] = None,
) -> list[JsonObject]:
    """List a session's scratchpad entries, least recently used first. Listing does not count as use."""
    await sessions.store.get(tenant, session_id)
    entries = await sessions.scratchpad.read(tenant, session_id, kinds=frozenset(kind or ()), touch=False)
    return [entry.to_json() for entry in entries]


@router.get("/sessions/{session_id}/journal", responses=documented(list[JournalStep]))
async def read_journal(
    session_id: SessionId,
    sessions: TheSessions,
    tenant: TheTenant,
    turn_id: TurnId | None = None,
    limit: Limit = 200,
) -> list[JsonObject]:
    """List the model and tool calls of a session or turn, newest first, without their contents."""
    return await sessions.archive.journal(tenant, session_id, turn_id=turn_id, limit=limit)
