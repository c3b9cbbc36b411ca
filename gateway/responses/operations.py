"""Responses about errors, health, evaluations and the caller."""

from typing import Literal

from pydantic import Field

from gateway.responses.common import JsonMap, ResponseModel
from orchestrator.turns.access import Scope


class Problem(ResponseModel):
    """An error, as problem details (RFC 9457). `code` is stable. `detail` is human-readable."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(examples=["not_found"])
    detail: str = Field(examples=["There is no session 'nowhere'."])
    field: str | None = Field(default=None, description="Problem, if the input is invalid (422, 413).")
    errors: list[JsonMap] | None = Field(default=None, description="All mistakes of a malformed request.")


class Alive(ResponseModel):
    status: Literal["live"]


class Ready(ResponseModel):
    status: Literal["ready"]
    models_down: list[JsonMap]
    off: list[str] = Field(description="Problems that turned background flows or jobs off.")


class InspectorFacts(ResponseModel):
    tenant_id: str
    domains: list[str]
    default_domain: str
    flower_url: str | None


class Evaluation(ResponseModel):
    """A run of `parley eval`, with its results."""

    run: str
    tenant_id: str
    domain: str
    model: str | None
    name: str = Field(examples=["without a model"])
    made_at: str
    conversations: int
    turns: int
    figures: dict[str, float | None] = Field(examples=[{"turns_as_expected": 0.98}])


class WholeEvaluation(Evaluation):
    confusion: list[JsonMap] = Field(description="Confusion matrix of flows.")
    outcomes: list[JsonMap] = Field(description="Conversations, with the faults of each turn.")


class Replay(ResponseModel):
    """A run of `parley replay`, with its counts."""

    replay: str
    tenant_id: str
    domain: str
    by: dict[str, str | None] = Field(
        description="Domain, prompt and model of the replay; null for the recorded ones."
    )
    made_at: str
    sessions: int
    turns: int
    differing: int = Field(description="Turns that changed.")
    changed: dict[str, int] = Field(
        description="Number of differing turns in each aspect.", examples=[{"calls": 2}]
    )
    not_made: dict[str, int] = Field(description="Calls without a recording, by tool.")
    left_out: dict[str, int] = Field(description="Turns that can't be replayed, by reason.")
    remembering: int = Field(description="Turns that read current preferences or documents.")
    seconds: float
    turns_a_second: float


class WholeReplay(Replay):
    different: list[JsonMap] = Field(description="The turns that differ, with each change.")


class Whoami(ResponseModel):
    """The caller as authenticated by the gateway."""

    tenant_id: str
    user_id: str | None
    name: str
    scopes: list[Scope]
    known: bool = Field(description="False if callers don't authenticate.")


class Ticket(ResponseModel):
    ticket: str = Field(description="Append it to the URL as `?access_token=…`.")
    expires_in: int = Field(description="Seconds.")
