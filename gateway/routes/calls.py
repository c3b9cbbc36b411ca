"""Receive results of deferred tool calls at the signed URL of each call (RT-32)."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request

from gateway.auth.rate_limits import count_failure
from gateway.dependencies import TheAccess, TheTurns
from gateway.request_bodies import CallResult
from gateway.responses.events import AnsweredCall
from orchestrator.errors import NotFound
from orchestrator.ports.access import acting_tenant
from orchestrator.turns.scheduled import ScheduledEvent
from orchestrator.turns.submission import Identifier
from orchestrator.types import DEFAULT_TENANT, TenantId

router = APIRouter(prefix="/v1/calls", tags=["calls"])


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
        await count_failure(access, request.client.host if request.client else "unknown")
        raise


def _describe(event: ScheduledEvent) -> AnsweredCall:
    return AnsweredCall(reference=event.event_id, session_id=event.session_id, turn_id=event.turn_id)
