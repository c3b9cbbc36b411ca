import math
import time
from http import HTTPStatus

from fastapi import APIRouter
from pydantic import Field

from gateway.dependencies import TheAccess, TheCaller
from gateway.schemas import ResponseModel, response_of
from orchestrator.errors import Unavailable
from orchestrator.turns.access import Caller

router = APIRouter(prefix="/v1", tags=["access"])


class Whoami(response_of(Caller, without=("credential", "expires_at"))):
    """The caller as authenticated by the gateway. `known`: false if callers don't authenticate."""


class Ticket(ResponseModel):
    ticket: str = Field(description="Append the ticket to the URL as `?access_token=…`.")
    expires_in: int = Field(description="Lifetime, in seconds.")


TICKET_LIVES_S = 60


@router.get("/whoami", response_model=Whoami)
async def whoami(caller: TheCaller) -> Caller:
    """Return the caller. `known` is false on a gateway without authentication."""
    return caller


@router.post("/tickets", status_code=HTTPStatus.CREATED)
async def issue_ticket(caller: TheCaller, access: TheAccess) -> Ticket:
    """Issue a ticket for a session's event stream or WebSocket. Add it to the URL as `?access_token=…`.

    Browsers need tickets, because EventSource and WebSocket can't send headers. The ticket is valid for at most
    a minute, and no longer than the caller's token.
    """
    if access.tickets is None:
        raise Unavailable("This gateway does not issue tickets.")
    left_s = TICKET_LIVES_S if caller.expires_at is None else caller.expires_at - time.time()
    lives_s = max(1, min(TICKET_LIVES_S, math.floor(left_s)))
    ticket = await access.tickets.issue(caller, lives_s=lives_s)
    return Ticket(ticket=ticket, expires_in=lives_s)
