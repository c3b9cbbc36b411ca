from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from gateway.auth.disclosure import turn_for
from gateway.dependencies import TheCaller, TheSessions, TheTenant, TheTurns
from gateway.schemas import (
    JsonMap,
    KeyHeader,
    Limit,
    ResponseModel,
    Timestamp,
    Wait,
    documented,
    format_time,
    optional,
    require_same_key,
    response_of,
)
from orchestrator.telemetry import SignalType
from orchestrator.turns import turn as records
from orchestrator.turns.repair import RepairOrder, Retry
from orchestrator.turns.step import StepStatus
from orchestrator.turns.submission import NO_NUL, TurnRequest
from orchestrator.turns.turn import FINISHED, TurnStatus, turn_object
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

router = APIRouter(prefix="/v1", tags=["turns"])


class Receipt(response_of(records.Receipt, without=("session_id", "repeated"))):
    """The receipt for an accepted turn. Parley has stored the turn and will answer it."""


class StackedFlow(ResponseModel):
    dact: str = Field(examples=["book_flight"])
    state: str = Field(examples=["Active"])
    reason: str | None
    slots: JsonMap = Field(examples=[{"origin": "OSL", "destination": "MAD"}])


class ToolCall(ResponseModel):
    tool_id: str
    arguments: JsonMap
    status: str


class Turn(ResponseModel):
    """A turn. Members are null or empty while their values are unknown."""

    session_id: str = Field(examples=["session_1"])
    turn_id: str = Field(examples=["turn_1"])
    seq: int
    epoch: int | None
    status: TurnStatus
    text: str | None = Field(examples=["Book a flight from Oslo to Madrid"])
    reply: str | None = Field(examples=["What day?"])
    flows: list[StackedFlow]
    completed: list[str]
    tools: list[ToolCall]
    frames: list[JsonMap] = Field(description="Blocks displayed with the reply, in order.")
    frame: JsonMap | None = Field(description="The last item in `frames`, or null if there are none.")
    actions: list[JsonMap]
    interaction: JsonMap = Field(
        description="Kind and details of the open question.", examples=[{"kind": "none"}]
    )
    code_snippet: JsonMap | None
    properties: JsonMap = Field(
        description="Provenance of the reply.",
        examples=[{"templates": ["book_flight"], "naturalized": False, "streamed": False}],
    )
    ambiguity: JsonMap | None = Field(examples=[{"level": "specific", "slot": "date", "flow_id": "flow_1"}])
    flags: JsonMap = Field(examples=[{"keep_going": False}])
    duration_ms: float | None = Field(examples=[2.1])
    error: str | None = optional("Why the turn failed.")


class JournalStep(ResponseModel):
    turn_id: str
    key: str
    kind: str
    status: StepStatus
    request_hash: str
    duration_ms: float | None = Field(description="Duration of the call, or null until it ends.")
    at: Timestamp


class TurnSignal(ResponseModel):
    """An observation about a turn. `payload` depends on `type`."""

    id: str
    source: str
    type: SignalType
    time: Timestamp
    flow_id: str | None = optional("ID of the flow that the signal concerns.")
    prompt_version: str | None = optional("Version of the prompt that the signal concerns.")
    payload: JsonMap


class TurnJournal(ResponseModel):
    """A turn's journal. `steps` are ordered by last write, and `signals` by time."""

    turn_id: str
    session_id: str
    status: TurnStatus
    started_at: Timestamp | None
    finished_at: Timestamp | None
    steps: list[JournalStep]
    signals: list[TurnSignal]


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
    """Accept a turn. Returns 202 with a receipt.

    With `wait`: returns 200 with the finished turn, or 202 with the unfinished turn after `wait` seconds.
    """
    require_same_key(key, body.idempotency_key)
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
    caller: TheCaller,
    status: TurnStatus | None = None,
    session_id: SessionId | None = None,
    limit: Limit = 100,
) -> list[JsonObject]:
    """List turns of one session or all sessions, newest first. `status=quarantined`: turns that need an operator."""
    records = await turns.inbox.turns(caller.tenant_id, session_id=session_id, status=status, limit=limit)
    return [turn_for(caller, turn_object(record)) for record in records]


@router.get(
    "/turns/{turn_id}",
    responses={
        200: {"model": Turn},
        202: {"model": Turn, "description": "With `wait`: not finished yet."},
    },
)
async def show_turn(
    turn_id: TurnId, turns: TheTurns, caller: TheCaller, response: Response, wait: Wait = None
) -> JsonObject:
    """Return a turn. `wait`: maximum time to wait until the turn has finished, in seconds."""
    record = await turns.inbox.turn(caller.tenant_id, turn_id)
    if wait is None or record.status in FINISHED:
        told = turn_object(record)
    else:
        told = await _waited(turns, caller.tenant_id, record.session_id, turn_id, wait, response)
    return turn_for(caller, told)


@router.get("/turns/{turn_id}/journal", responses=documented(TurnJournal))
async def read_turn_journal(
    turn_id: TurnId, turns: TheTurns, sessions: TheSessions, tenant: TheTenant
) -> JsonObject:
    """Return a turn's model and tool calls, and its signals. For operators only.

    Signals report predictions, checks, calls, recoveries and templates. They are stored when the turn ends.
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
    """Cancel a queued turn immediately, or ask a running turn to stop."""
    return turn_object(await turns.inbox.cancel(tenant, turn_id))


@router.post("/turns/{turn_id}/retry", responses=documented(Turn))
async def retry_turn(
    turn_id: TurnId,
    turns: TheTurns,
    sessions: TheSessions,
    caller: TheCaller,
    why: Annotated[str, Query(min_length=1, max_length=1000, pattern=NO_NUL)] = "Retried by turn ID.",
) -> JsonObject:
    """Requeue a quarantined turn at the end of its session's queue. Parley records the operator and `why`."""
    record = await turns.inbox.turn(caller.tenant_id, turn_id)
    session = await sessions.store.get(caller.tenant_id, record.session_id)
    order = RepairOrder(repairs=[Retry(kind="retry", turn=turn_id)], epoch=session.epoch, why=why)
    signed = order.model_dump(mode="json") | {"by": caller.name}
    retried = await turns.inbox.retry(caller.tenant_id, turn_id, signed)
    await turns.wakeup.offer(record.session_id)
    return turn_object(retried)
