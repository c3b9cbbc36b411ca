from typing import Literal

from pydantic import Field

from gateway.responses.common import JsonMap, ResponseModel, response_of
from orchestrator.turns.access import Caller


class Problem(ResponseModel):
    """An error, as problem details (RFC 9457). `code` is stable. `detail` is human-readable."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(examples=["not_found"])
    detail: str = Field(examples=["Session 'nowhere' not found."])
    field: str | None = Field(
        default=None, description="The invalid part of the request, if one caused the error."
    )
    errors: list[JsonMap] | None = Field(default=None, description="All errors in a malformed request.")


class Alive(ResponseModel):
    status: Literal["live"]


class Ready(ResponseModel):
    status: Literal["ready"]
    off: list[str] = Field(description="Problems that disabled background flows or scheduled jobs.")


class InspectorFacts(ResponseModel):
    tenant_id: str
    domains: list[str]
    default_domain: str
    flower_url: str | None


class Whoami(response_of(Caller, without=("credential", "expires_at"))):
    """The caller as authenticated by the gateway. `known`: false if callers don't authenticate."""


class Ticket(ResponseModel):
    ticket: str = Field(description="Append the ticket to the URL as `?access_token=…`.")
    expires_in: int = Field(description="Lifetime, in seconds.")
