"""Bodies of requests that only HTTP knows; a turn's is `orchestrator.turns.request`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, model_validator

from orchestrator.turns.request import Action, Identifier, Key, PlainText, Request
from orchestrator.turns.turn import IfBusy


class NewSession(Request):
    domain: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    tenant_id: Identifier | None = None
    if_busy: IfBusy = IfBusy.ENQUEUE
    webhook: Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://")] | None = None


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


class SocketMessage(Request):
    """What a client sends over a WebSocket; one of the first three at least.

    `dialogueAct`: the dact of a flow to start; `lastAction`: what the user did instead of writing.
    """

    currentMessage: PlainText | None = None  # noqa: N815  # the name is a contract
    dialogueAct: Identifier | None = None  # noqa: N815
    lastAction: Action | Identifier | None = None  # noqa: N815
    conversation_id: str | None = None
    idempotency_key: Key | None = None

    @model_validator(mode="after")
    def _something_to_do(self) -> SocketMessage:
        if self.currentMessage is None and self.dialogueAct is None and self.lastAction is None:
            raise ValueError("give currentMessage, lastAction or dialogueAct")
        return self
