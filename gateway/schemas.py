"""Bodies of requests that only HTTP knows; a turn's is `orchestrator.turns.request`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from orchestrator.turns.request import Identifier, Request
from orchestrator.turns.turn import IfBusy


class NewSession(Request):
    domain: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    tenant_id: Identifier | None = None
    if_busy: IfBusy = IfBusy.ENQUEUE
    webhook: Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://")] | None = None


class NewWebhook(Request):
    """`events`: types of durable events; all of them when left out."""

    url: Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://")]
    session_id: Identifier | None = None
    events: Annotated[list[Identifier], Field(min_length=1, max_length=32)] | None = None


class ApprovalDecision(Request):
    decision: Literal["grant", "deny"]
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")] | None = None
    decided_by: Identifier | None = None


class Rollback(Request):
    epoch: Annotated[int, Field(ge=0, le=2**62)]


class NewRunBody(Request):
    """A run of an Internal flow; without a session for flows that need none."""

    flow: Identifier
    session_id: Identifier | None = None
    inputs: Annotated[list[JsonValue], Field(max_length=100_000, default_factory=list[JsonValue])]
    options: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    parameters: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
