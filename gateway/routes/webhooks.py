"""Manage webhooks, retry failing deliveries, and rotate the signing secret (RT-16)."""

from http import HTTPStatus

from fastapi import APIRouter

from gateway.dependencies import TheTenant, TheWebhooks
from gateway.parameters import Limit
from gateway.request_bodies import NewWebhook
from gateway.responses import webhooks as responses
from orchestrator.turns.webhook import Feed, Webhook
from orchestrator.types import SessionId

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])


@router.get("", response_model=list[responses.Webhook])
async def list_webhooks(webhooks: TheWebhooks, tenant: TheTenant, limit: Limit = 100) -> list[Webhook]:
    """List the tenant's webhooks."""
    return await webhooks.list(tenant, limit=limit)


@router.post("", status_code=HTTPStatus.CREATED, response_model=responses.Webhook)
async def create_webhook(body: NewWebhook, webhooks: TheWebhooks, tenant: TheTenant) -> Webhook:
    """Create a webhook that sends new events of one session or all sessions to a URL."""
    session_id = None if body.session_id is None else SessionId(body.session_id)
    events = None if body.events is None else tuple(body.events)
    return await webhooks.create(tenant, body.url, session_id=session_id, events=events)


@router.post("/secret", status_code=HTTPStatus.CREATED)
async def rotate_secret(webhooks: TheWebhooks, tenant: TheTenant) -> responses.WebhookSecret:
    """Create a signing secret, which is returned only once.

    Deliveries are signed with the new and the previous secret.
    """
    return responses.WebhookSecret(secret=await webhooks.rotate_secret(tenant))


@router.get("/failing", response_model=list[responses.FailingFeed])
async def list_failing(webhooks: TheWebhooks, tenant: TheTenant, limit: Limit = 100) -> list[Feed]:
    """List feeds with failing or abandoned deliveries. A feed is one session's events for one webhook."""
    return await webhooks.failing(tenant, limit=limit)


@router.delete("/{webhook_id}", status_code=HTTPStatus.NO_CONTENT)
async def close_webhook(webhook_id: str, webhooks: TheWebhooks, tenant: TheTenant) -> None:
    """Close a webhook."""
    await webhooks.close(tenant, webhook_id)


@router.post("/{webhook_id}/retry", status_code=HTTPStatus.ACCEPTED)
async def retry_webhook(
    webhook_id: str, webhooks: TheWebhooks, tenant: TheTenant, session_id: SessionId | None = None
) -> responses.RetriedFeeds:
    """Retry a webhook's failing feeds immediately, for one session or all sessions.

    `feeds`: number of retried feeds.
    """
    return responses.RetriedFeeds(feeds=await webhooks.retry(tenant, webhook_id, session_id))
