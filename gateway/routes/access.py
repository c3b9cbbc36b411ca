"""Who the caller is, and tickets for where no header can be sent."""

import math
import time
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
    """Give a ticket for a session's events and socket: add it to their address as `?access_token=…`.

    For a browser's EventSource and WebSocket, which send no header. It lives for a minute at most, no longer
    than the key or token that it was given for, and opens nothing else.
    """
    if access.tickets is None:
        raise Unavailable("This gateway gives no tickets.")
    left_s = TICKET_LIVES_S if caller.expires_at is None else caller.expires_at - time.time()
    lives_s = max(1, min(TICKET_LIVES_S, math.floor(left_s)))
    ticket = await access.tickets.issue(caller, lives_s=lives_s)
    return Ticket(ticket=ticket, expires_in=lives_s)
