from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from gateway.dependencies import TheCaller, TheTurns
from gateway.schemas import ResponseModel, Timestamp
from orchestrator.errors import InvalidInput
from orchestrator.turns.search import TurnFilter
from orchestrator.turns.submission import NO_NUL
from orchestrator.turns.turn import TurnKind, TurnStatus
from orchestrator.types import TurnId, UserId

router = APIRouter(prefix="/v1/turns", tags=["turns"])


class FoundTurn(ResponseModel):
    """A turn found by a search, with quality indicators."""

    turn_id: str
    session_id: str
    seq: int
    user_id: str | None
    domain: str
    kind: TurnKind
    status: TurnStatus
    said: str | None
    action: str | None = Field(description="Name of the clicked action, if there is no text.")
    reply: str | None
    error: str | None
    accepted_at: Timestamp
    ran_ms: float | None
    failed: bool = Field(description="Whether the turn ended with an error or an apology.")
    not_understood: bool
    rated_down: bool
    refused_by: str | None = Field(description="The budget that refused a model call.", examples=["user_day"])
    tokens: int
    cost_micros: int = Field(description="Cost of the turn's model calls, in millionths of a US dollar.")


class FoundTurns(ResponseModel):
    turns: list[FoundTurn]
    next: str | None = Field(description="Value of `before` for the next page, or null if there is none.")


class DayOfTurns(ResponseModel):
    """Metrics for one day. `median_ms`: median time from a turn's start to its end, in milliseconds.

    `over_budget`: turns in which a budget refused a model call. `cost_micros`: cost of model calls, in
    millionths of a US dollar.
    """

    day: str = Field(examples=["2026-01-31"])
    turns: int
    failed: int
    not_understood: int
    rated_down: int
    over_budget: int
    median_ms: float | None
    tokens: int
    cost_micros: int


class TurnsOfUser(ResponseModel):
    """Metrics for one user, or for all sessions without a user.

    `cost_micros`: cost of model calls, in millionths of a US dollar.
    """

    user_id: str | None
    turns: int
    failed: int
    over_budget: int = Field(description="Turns in which a budget refused a model call.")
    tokens: int
    cost_micros: int


MOST_WORDS = 8
Days = Annotated[int, Query(ge=1, le=90, description="Number of days to search, back from now.")]
Text = Annotated[str | None, Query(min_length=1, max_length=200, pattern=NO_NUL)]


@router.get("/search")
async def search_turns(
    turns: TheTurns,
    caller: TheCaller,
    q: Annotated[
        Text, Query(description="Up to eight words that must all occur in the message or reply.")
    ] = None,
    failed: bool | None = None,
    not_understood: bool | None = None,
    rated_down: bool | None = None,
    over_budget: bool | None = None,
    min_ms: Annotated[
        float | None, Query(ge=0, description="Minimum time from start to end, in milliseconds.")
    ] = None,
    min_cost_micros: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    domain: Text = None,
    user_id: Text = None,
    days: Days = 7,
    before: Annotated[Text, Query(description="`next` from the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> FoundTurns:
    """Search turns across sessions by words, quality and cost, newest first. For operators only.

    A request examines up to 2,000 turns, so a page can be short or empty before the end. Continue with `next`.
    """
    words = (q or "").split()
    if len(words) > MOST_WORDS:
        raise InvalidInput(f"Search for at most {MOST_WORDS} words, not {len(words)}.", field="q")
    wanted = TurnFilter(
        tuple(words),
        failed,
        not_understood,
        rated_down,
        over_budget,
        min_ms,
        min_cost_micros,
        domain,
        UserId(user_id) if user_id else None,
    )
    found = await turns.search.find(
        caller.tenant_id,
        wanted,
        since=datetime.now(UTC) - timedelta(days=days),
        before=TurnId(before) if before else None,
        limit=limit,
    )
    return FoundTurns(turns=[FoundTurn.model_validate(turn) for turn in found.turns], next=found.next)


@router.get("/days")
async def count_turns_by_day(turns: TheTurns, caller: TheCaller, days: Days = 14) -> list[DayOfTurns]:
    """Return turn counts, median run times and costs per UTC day, oldest day first. For operators only.

    Only the newest 20,000 turns are counted.
    """
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    counted = await turns.search.by_day(caller.tenant_id, since=midnight - timedelta(days=days - 1))
    return [DayOfTurns.model_validate(day) for day in counted]


@router.get("/users")
async def count_turns_by_user(
    turns: TheTurns, caller: TheCaller, days: Days = 7, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> list[TurnsOfUser]:
    """Return turn counts and costs per user, most expensive user first. For operators only.

    Only the newest 20,000 turns are counted.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    counted = await turns.search.by_user(caller.tenant_id, since=since, limit=limit)
    return [TurnsOfUser.model_validate(user) for user in counted]
