"""Receive results of deferred tool calls at the signed URL of each call (RT-32)."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict, Field, StringConstraints

from gateway.auth.rate_limits import count_failure
from gateway.dependencies import TheAccess, TheTurns
from gateway.schemas import ResponseModel
from orchestrator.errors import FailureCategory, NotFound
from orchestrator.ports.access import acting_tenant
from orchestrator.turns.scheduled import ScheduledEvent
from orchestrator.turns.submission import NO_NUL, AnyJson, Identifier, RequestBody
from orchestrator.types import DEFAULT_TENANT, JsonObject, TenantId

router = APIRouter(prefix="/v1/calls", tags=["calls"])


class CallResult(RequestBody):
    """The result of a deferred tool call. `data`: the output. `message`: the failure's reason, for the user."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"status": "done", "data": {"receipt": "R-17"}},
                {"status": "failed", "message": "The card was declined."},
            ]
        }
    )

    status: Literal["done", "failed"]
    data: Annotated[dict[str, AnyJson], Field(max_length=256)] = Field(default_factory=dict[str, Any])
    message: Annotated[str, StringConstraints(max_length=500, pattern=NO_NUL)] | None = None
    category: FailureCategory | None = None

    def outcome(self) -> JsonObject:
        if self.status == "done":
            return {"status": self.status, "data": dict(self.data)}
        category = self.category or FailureCategory.VALIDATION_ERROR
        return {"status": self.status, "message": self.message, "category": category.value}


class AnsweredCall(ResponseModel):
    """A deferred tool call with a result. `turn_id`: the turn that continues with it, or null before that turn."""

    reference: str
    session_id: str
    turn_id: str | None


@router.post("/{reference}", status_code=HTTPStatus.ACCEPTED)
async def answer_call(
    reference: Identifier,
    body: CallResult,
    turns: TheTurns,
    access: TheAccess,
    request: Request,
    signature: Annotated[str, Query(min_length=1, max_length=128)],
    tenant: Annotated[Identifier, Query()] = DEFAULT_TENANT,
) -> AnsweredCall:
    """Submit the result of a deferred tool call.

    The flow resumes in a new turn, and repeated requests return the same turn. The tool received this URL
    with the call, and needs no other credentials.
    """
    tenant_id = TenantId(tenant)
    acting_tenant.set(tenant_id)
    try:
        return _describe(await turns.answer(tenant_id, reference, signature, body.outcome()))
    except NotFound:
        await count_failure(access, request)
        raise


def _describe(event: ScheduledEvent) -> AnsweredCall:
    return AnsweredCall(reference=event.event_id, session_id=event.session_id, turn_id=event.turn_id)
