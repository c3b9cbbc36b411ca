"""Manage webhooks, retry failing deliveries, and rotate the signing secret (RT-16)."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BeforeValidator, Field, StringConstraints

from gateway.dependencies import TheTenant, TheWebhooks
from gateway.schemas import Limit, ResponseModel, response_of
from orchestrator.turns import webhook as records
from orchestrator.turns.submission import Identifier, RequestBody
from orchestrator.types import SessionId

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

_PORT = r"6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4}"
_SIX = r"[0-9A-Fa-f]{1,4}"
_HOST = (
    r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
    rf"|\[(::1|({_SIX}:){{7}}{_SIX}|({_SIX}:){{1,3}}(:{_SIX}){{1,4}})\])"
)
# HTTP URLs without user, password or fragment.
WebAddress = Annotated[
    str,
    StringConstraints(max_length=2048, pattern=rf'^https?://{_HOST}(:({_PORT}))?([/?][!"$-~]*)?$'),
]


class NewWebhook(RequestBody):
    """A webhook for one session or all sessions. `events`: types of events to send. Default: all types."""

    url: WebAddress
    session_id: Identifier | None = None
    events: Annotated[list[Identifier], Field(min_length=1, max_length=32)] | None = None


def _name_status(given_up_at: datetime | None) -> str:
    return "retrying" if given_up_at is None else "given_up"


class Webhook(response_of(records.Webhook, without=("tenant_id", "closed_at"))):
    session_id: str | None = Field(description="Session ID, or null for all sessions of the tenant.")
    events: list[str] | None = Field(description="Event types, or null for all stored events.")


class WebhookSecret(ResponseModel):
    secret: str


class FailingFeed(response_of(records.Feed, without=("tenant_id",))):
    """A failing or abandoned delivery of a session's events to a webhook."""

    status: Annotated[Literal["retrying", "given_up"], BeforeValidator(_name_status)] = Field(
        validation_alias="given_up_at", description="A feed with the status `given_up` waits for an operator."
    )


class RetriedFeeds(ResponseModel):
    feeds: int


@router.get("", response_model=list[Webhook])
async def list_webhooks(
    webhooks: TheWebhooks, tenant: TheTenant, limit: Limit = 100
) -> list[records.Webhook]:
    """List the tenant's webhooks."""
    return await webhooks.list(tenant, limit=limit)


@router.post("", status_code=HTTPStatus.CREATED, response_model=Webhook)
async def create_webhook(body: NewWebhook, webhooks: TheWebhooks, tenant: TheTenant) -> records.Webhook:
    """Create a webhook that sends new events of one session or all sessions to a URL."""
    session_id = None if body.session_id is None else SessionId(body.session_id)
    events = None if body.events is None else tuple(body.events)
    return await webhooks.create(tenant, body.url, session_id=session_id, events=events)


@router.post("/secret", status_code=HTTPStatus.CREATED)
async def rotate_secret(webhooks: TheWebhooks, tenant: TheTenant) -> WebhookSecret:
    """Create a signing secret, which is returned only once.

    Deliveries are signed with the new and the previous secret.
    """
    return WebhookSecret(secret=await webhooks.rotate_secret(tenant))


@router.get("/failing", response_model=list[FailingFeed])
async def list_failing(webhooks: TheWebhooks, tenant: TheTenant, limit: Limit = 100) -> list[records.Feed]:
    """List feeds with failing or abandoned deliveries. A feed is one session's events for one webhook."""
    return await webhooks.failing(tenant, limit=limit)


@router.delete("/{webhook_id}", status_code=HTTPStatus.NO_CONTENT)
async def close_webhook(webhook_id: str, webhooks: TheWebhooks, tenant: TheTenant) -> None:
    """Close a webhook."""
    await webhooks.close(tenant, webhook_id)


@router.post("/{webhook_id}/retry", status_code=HTTPStatus.ACCEPTED)
async def retry_webhook(
    webhook_id: str, webhooks: TheWebhooks, tenant: TheTenant, session_id: SessionId | None = None
) -> RetriedFeeds:
    """Retry a webhook's failing feeds immediately, for one session or all sessions.

    `feeds`: number of retried feeds.
    """
    return RetriedFeeds(feeds=await webhooks.retry(tenant, webhook_id, session_id))
