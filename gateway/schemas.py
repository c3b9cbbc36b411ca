"""Bodies of requests that only HTTP knows; a turn's is `orchestrator.turns.request`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from orchestrator.turns.feedback import Rating
from orchestrator.turns.request import Action, AnyJson, Identifier, Key, PlainText, Request
from orchestrator.turns.turn import IfBusy

NO_NUL = r"^[^\x00]*$"
_PORT = r"6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4}"
_SIX = r"[0-9A-Fa-f]{1,4}"
_HOST = (
    r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
    rf"|\[(::1|({_SIX}:){{7}}{_SIX}|({_SIX}:){{1,3}}(:{_SIX}){{1,4}})\])"
)
WebAddress = Annotated[
    str,
    StringConstraints(max_length=2048, pattern=rf'^https?://{_HOST}(:({_PORT}))?([/?][!"$-~]*)?$'),
]
"""Without user, password and fragment."""


class NewSession(Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"domain": "travel", "user_id": "ada"}]})

    domain: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    tenant_id: Identifier | None = None
    if_busy: IfBusy = IfBusy.ENQUEUE
    webhook: WebAddress | None = None


class NewWebhook(Request):
    """`events`: types of durable events; all of them when left out."""

    url: WebAddress
    session_id: Identifier | None = None
    events: Annotated[list[Identifier], Field(min_length=1, max_length=32)] | None = None


class ApprovalDecision(Request):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"decision": "grant", "reason": "within the budget"}]}
    )

    decision: Literal["grant", "deny"]
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")] | None = None
    decided_by: Identifier | None = None


class Rollback(Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"epoch": 3}]})

    epoch: Annotated[int, Field(ge=0, le=2**53)]


class NewRunBody(Request):
    """A run of an Internal flow; without a session for flows that need none."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"flow": "summarize_session", "session_id": "session_1"}]}
    )

    flow: Identifier
    session_id: Identifier | None = None
    inputs: Annotated[list[AnyJson], Field(max_length=100_000, default_factory=list[AnyJson])]
    options: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])
    parameters: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])


class Correction(Request):
    """What would have been right; any part of it."""

    reply: Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=NO_NUL)] | None = None
    dact: Identifier | None = None
    slots: dict[str, AnyJson] | None = None


class NewFeedback(Request):
    """A thumb, words, or what would have been right; at least one of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
                for name in ("rating", "comment", "correction")
            ],
            "examples": [
                {"rating": "up"},
                {
                    "rating": "down",
                    "comment": "I meant Friday.",
                    "correction": {"slots": {"date": "2026-12-04"}},
                },
            ],
        }
    )

    rating: Rating | None = None
    comment: Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=NO_NUL)] | None = None
    correction: Correction | None = None
    author: Identifier | None = None

    @model_validator(mode="after")
    def _says_something(self) -> NewFeedback:
        if self.rating is None and self.comment is None and self.correction is None:
            raise ValueError("give rating, comment or correction")
        return self


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
