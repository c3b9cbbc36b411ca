from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gateway.responses.common import ResponseModel, response_of
from orchestrator.turns import webhook


def _name_status(given_up_at: datetime | None) -> str:
    return "retrying" if given_up_at is None else "given_up"


class Webhook(response_of(webhook.Webhook, without=("tenant_id", "closed_at"))):
    session_id: str | None = Field(description="Session ID, or null for all sessions of the tenant.")
    events: list[str] | None = Field(description="Event types, or null for all stored events.")


class WebhookSecret(ResponseModel):
    secret: str


class FailingFeed(response_of(webhook.Feed, without=("tenant_id",))):
    """A failing or abandoned delivery of a session's events to a webhook."""

    status: Annotated[Literal["retrying", "given_up"], BeforeValidator(_name_status)] = Field(
        validation_alias="given_up_at", description="A feed with the status `given_up` waits for an operator."
    )


class RetriedFeeds(ResponseModel):
    feeds: int
