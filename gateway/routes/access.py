"""Who one is, and tickets for where no header can be sent."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter

from gateway import shapes
from gateway.doors import TheCaller, TheDoors
from orchestrator.errors import Unavailable
from orchestrator.types import JsonObject

router = APIRouter(prefix="/v1", tags=["access"])

TICKET_LIVES_S = 60


@router.get("/whoami", responses={200: {"model": shapes.Whoami}})
async def whoami(caller: TheCaller) -> JsonObject:
    """The caller as the gateway knows him; `known` is false where nobody is asked."""
    return {
        "tenant_id": caller.tenant_id,
        "user_id": caller.user_id,
        "name": caller.name,
        "scopes": sorted(caller.scopes),
        "known": caller.known,
    }


@router.post("/tickets", status_code=HTTPStatus.CREATED, responses={201: {"model": shapes.Ticket}})
async def issue_ticket(caller: TheCaller, doors: TheDoors) -> JsonObject:
    """A ticket stands for the caller for a minute: add it to an address as `?access_token=…`.

    For a browser's EventSource and WebSocket, which send no header.
    """
    if doors.access.tickets is None:
        raise Unavailable("This gateway gives no tickets.")
    ticket = await doors.access.tickets.issue(caller, lives_s=TICKET_LIVES_S)
    return {"ticket": ticket, "expires_in": TICKET_LIVES_S}
