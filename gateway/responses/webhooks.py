"""Webhook responses, including failures."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gateway.responses.common import ResponseModel, Timestamp


def _name_status(given_up_at: datetime | None) -> str:
    return "retrying" if given_up_at is None else "given_up"


class Webhook(ResponseModel):
    webhook_id: str
    session_id: str | None = Field(description="The session, or null for all sessions of the tenant.")
    url: str
    events: list[str] | None = Field(description="Event types, or null for all stored events.")
    created_at: Timestamp | None


class WebhookSecret(ResponseModel):
    secret: str


class FailingFeed(ResponseModel):
    """A session's events that a webhook's receiver has not accepted."""

    webhook_id: str
    session_id: str
    status: Annotated[Literal["retrying", "given_up"], BeforeValidator(_name_status)] = Field(
        validation_alias="given_up_at", description="An abandoned feed waits for an operator."
    )
    attempts: int
    error: str | None
    delivered: int
    wanted: int
    failing_since: Timestamp | None
    given_up_at: Timestamp | None


class RetriedFeeds(ResponseModel):
    feeds: int
