"""Who the caller is, and tickets for where no header can be sent."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter

from gateway.dependencies import TheAccess, TheCaller
from gateway.responses.operations import Ticket, Whoami
from orchestrator.errors import Unavailable
from orchestrator.turns.access import Caller

router = APIRouter(prefix="/v1", tags=["access"])

TICKET_LIVES_S = 60


@router.get("/whoami", response_model=Whoami)
async def whoami(caller: TheCaller) -> Caller:
    """The caller as the gateway knows them; `known` is false where callers do not authenticate."""
    return caller


@router.post("/tickets", status_code=HTTPStatus.CREATED)
async def issue_ticket(caller: TheCaller, access: TheAccess) -> Ticket:
    """A ticket stands for the caller for a minute: add it to an address as `?access_token=…`.

    For a browser's EventSource and WebSocket, which send no header.
    """
    if access.tickets is None:
        raise Unavailable("This gateway gives no tickets.")
    ticket = await access.tickets.issue(caller, lives_s=TICKET_LIVES_S)
    return Ticket(ticket=ticket, expires_in=TICKET_LIVES_S)
