"""Webhooks: where events go, what fails, and the secret that deliveries are signed with (RT-16)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from gateway import shapes
from gateway.doors import Doors, TheDoors, TheTenant
from gateway.schemas import NewWebhook
from orchestrator.adapters.postgres.webhooks import PostgresWebhooks
from orchestrator.errors import Unavailable
from orchestrator.turns.webhook import Feed, Webhook
from orchestrator.types import JsonObject, SessionId

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

Limit = Annotated[int, Query(ge=1, le=1000)]


def webhook_object(webhook: Webhook) -> JsonObject:
    return {
        "webhook_id": webhook.webhook_id,
        "session_id": webhook.session_id,
        "url": webhook.url,
        "events": None if webhook.events is None else list(webhook.events),
        "created_at": None if webhook.created_at is None else webhook.created_at.isoformat(),
    }


def feed_object(feed: Feed) -> JsonObject:
    """`status`: retrying, or given_up until an operator says otherwise."""
    return {
        "webhook_id": feed.webhook_id,
        "session_id": feed.session_id,
        "status": "retrying" if feed.given_up_at is None else "given_up",
        "attempts": feed.attempts,
        "error": feed.error,
        "delivered": feed.delivered,
        "wanted": feed.wanted,
        "failing_since": None if feed.failing_since is None else feed.failing_since.isoformat(),
        "given_up_at": None if feed.given_up_at is None else feed.given_up_at.isoformat(),
    }


@router.get("", responses={200: {"model": list[shapes.Webhook]}})
async def list_webhooks(doors: TheDoors, tenant: TheTenant, limit: Limit = 100) -> list[JsonObject]:
    """The tenant's webhooks."""
    return [webhook_object(webhook) for webhook in await _kept(doors).list(tenant, limit=limit)]


@router.post("", status_code=HTTPStatus.CREATED, responses={201: {"model": shapes.Webhook}})
async def create_webhook(body: NewWebhook, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Tell the events of one session, or of all, to an address, from now on."""
    session_id = None if body.session_id is None else SessionId(body.session_id)
    events = None if body.events is None else tuple(body.events)
    return webhook_object(await _kept(doors).create(tenant, body.url, session_id=session_id, events=events))


@router.post("/secret", status_code=HTTPStatus.CREATED, responses={201: {"model": shapes.WebhookSecret}})
async def rotate_secret(doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """A new secret, shown this once. Deliveries carry a signature of it and of the one before."""
    return {"secret": await _kept(doors).rotate_secret(tenant)}


@router.get("/failing", responses={200: {"model": list[shapes.FailingFeed]}})
async def list_failing(doors: TheDoors, tenant: TheTenant, limit: Limit = 100) -> list[JsonObject]:
    """What is tried again, and what was given up: by webhook and session."""
    return [feed_object(feed) for feed in await _kept(doors).failing(tenant, limit=limit)]


@router.delete("/{webhook_id}", status_code=HTTPStatus.NO_CONTENT)
async def close_webhook(webhook_id: str, doors: TheDoors, tenant: TheTenant) -> None:
    """Tell it nothing more."""
    await _kept(doors).close(tenant, webhook_id)


@router.post(
    "/{webhook_id}/retry", status_code=HTTPStatus.ACCEPTED, responses={202: {"model": shapes.RetriedFeeds}}
)
async def retry_webhook(
    webhook_id: str, doors: TheDoors, tenant: TheTenant, session_id: SessionId | None = None
) -> JsonObject:
    """Deliver again, at once, from where it stopped; `feeds` is how many sessions that concerns."""
    return {"feeds": await _kept(doors).retry(tenant, webhook_id, session_id)}


def _kept(doors: Doors) -> PostgresWebhooks:
    if doors.webhooks is None:
        raise Unavailable("This gateway keeps no webhooks.")
    return doors.webhooks
