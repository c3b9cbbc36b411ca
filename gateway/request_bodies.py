"""Request bodies of the HTTP API. For a turn's body, see `orchestrator.turns.submission`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict

from orchestrator.dialogue.records import Label
from orchestrator.dialogue.validation import is_bounded_json
from orchestrator.errors import FailureCategory
from orchestrator.ports.memory.preferences import LONGEST_TEXT, MOST_PREFERENCES, PreferenceKind, Source
from orchestrator.turns.feedback import Rating
from orchestrator.turns.submission import (
    NO_NUL,
    Action,
    AnyJson,
    IdempotencyKey,
    Identifier,
    LocaleTag,
    PlainText,
    RequestBody,
    Timezone,
    TurnRequest,
)
from orchestrator.turns.turn import IfBusy
from orchestrator.types import JsonObject

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
PreferenceKey = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.*:-]+$")
]
PreferenceText = Annotated[str, StringConstraints(max_length=LONGEST_TEXT, pattern=NO_NUL)]
DomainName = Annotated[str, StringConstraints(max_length=128, pattern=NO_NUL)]
Title = Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)]

# JSON Schemas of members that must be present or absent, which the types can't express.
GIVEN: JsonDict = {"not": {"type": "null"}}
ABSENT: JsonDict = {"type": "null"}


class CallResult(RequestBody):
    """The result of a deferred tool call. `data`: the output. `message`: the failure's reason, for the user."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"status": "done", "data": {"receipt": "R-17"}},
                {"status": "failed", "message": "The card was declined."},
            ]
        }
    )

    status: Literal["done", "failed"]
    data: Annotated[dict[str, AnyJson], Field(max_length=256)] = Field(default_factory=dict[str, Any])
    message: Annotated[str, StringConstraints(max_length=500, pattern=NO_NUL)] | None = None
    category: FailureCategory | None = None

    def outcome(self) -> JsonObject:
        if self.status == "done":
            return {"status": self.status, "data": dict(self.data)}
        category = self.category or FailureCategory.VALIDATION_ERROR
        return {"status": self.status, "message": self.message, "category": category.value}


class NewSession(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"domain": "travel", "user_id": "ada"}]})

    domain: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    tenant_id: Identifier | None = None
    if_busy: IfBusy | None = None
    """The rule for turns that arrive while another turn is running. Default: the domain's rule."""
    webhook: WebAddress | None = None
    timezone: Timezone | None = None
    """The user's IANA time zone. Default: the time zone of the user's last session, or of the domain."""
    locale: LocaleTag | None = None
    """The user's locale, for example ``de-DE``. Default: the locale of the user's last session, or of the domain."""


class NewWebhook(RequestBody):
    """A webhook for one session or all sessions. `events`: types of events to send. Default: all types."""

    url: WebAddress
    session_id: Identifier | None = None
    events: Annotated[list[Identifier], Field(min_length=1, max_length=32)] | None = None


class ApprovalDecision(RequestBody):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"decision": "grant", "reason": "within the budget"}]}
    )

    decision: Literal["grant", "deny"]
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=NO_NUL)] | None = None
    decided_by: Identifier | None = None


class Rollback(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"epoch": 3}]})

    epoch: Annotated[int, Field(ge=0, le=2**53)]


class Branch(RequestBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"epoch": 3}]})

    epoch: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """The epoch to fork at. Default: the current epoch."""
    session_id: Identifier | None = None


_OPTIONS: JsonDict = {
    "type": "object",
    "properties": {
        "model": {"type": ["string", "null"]},
        "concurrency": {"type": "integer", "minimum": 1},
        "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
    },
    "additionalProperties": False,
}


class NewRunBody(RequestBody):
    """A request to start either a flow or all flows of a trigger, optionally for a session."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["flow"], "properties": {"flow": GIVEN, "trigger": ABSENT}},
                {
                    "required": ["trigger"],
                    "properties": {
                        "trigger": GIVEN,
                        "flow": ABSENT,
                        "inputs": {"maxItems": 0},
                        "options": {"maxProperties": 0},
                    },
                },
            ],
            "examples": [{"flow": "summarize_session", "session_id": "session_1"}],
        }
    )

    flow: Identifier | None = None
    trigger: Identifier | None = None
    session_id: Identifier | None = None
    inputs: Annotated[list[AnyJson], Field(max_length=100_000, default_factory=list[AnyJson])]
    options: Annotated[dict[str, AnyJson], WithJsonSchema(_OPTIONS)] = Field(
        default_factory=dict[str, AnyJson]
    )
    parameters: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])


class Correction(RequestBody):
    """The correct reply, flow or slots."""

    reply: Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=NO_NUL)] | None = None
    dact: Identifier | None = None
    slots: dict[str, AnyJson] | None = None


class NewFeedback(RequestBody):
    """Feedback with at least one of rating, comment and correction."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: GIVEN}}
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
            raise ValueError("requires rating, comment or correction")
        return self


class DocumentBody(RequestBody):
    """A document for one domain or all domains, and for one user or all users of the tenant."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Baggage",
                    "text": "# Baggage\n\nOne cabin bag of up to 8 kg is free.",
                    "domain": "travel",
                }
            ]
        },
    )

    text: PlainText
    title: Title = ""
    domain: DomainName = ""
    user_id: Identifier | None = None
    labels: Annotated[list[Label], Field(max_length=8)] = Field(
        default_factory=list[Label], description="Labels for sessions that use the document."
    )


class PreferenceBody(RequestBody):
    """A preference.

    `key`: ``flow.slot``, or ``*.slot`` for all flows, for a rule with a value; any other key for a text
    note. A preference from a response can be sent back, and then keeps its source and origin.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["value"], "properties": {"value": GIVEN}},
                {"required": ["text"], "properties": {"text": {"pattern": r"\S"}}},
            ]
        },
    )

    key: PreferenceKey
    kind: PreferenceKind = PreferenceKind.RULE
    value: AnyJson = None
    text: PreferenceText = ""
    source: Source = Source.EXPLICIT
    labels: Annotated[list[Label], Field(max_length=8)] = Field(default_factory=list[Label])
    origin: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])
    updated_at: str | None = None

    @model_validator(mode="after")
    def _has_content(self) -> PreferenceBody:
        if self.value is None and not self.text.strip():
            raise ValueError("requires value or text")
        if not is_bounded_json(self.value) or not is_bounded_json(self.origin):
            raise ValueError("the value is too large or too deeply nested")
        return self


class PreferencesBody(RequestBody):
    """All preferences of a user. Preferences that are not listed are deleted."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "preferences": [
                        {"key": "*.seat_position", "value": "aisle", "text": "prefers aisle seats"},
                        {"key": "note.diet", "kind": "note", "text": "eats no meat"},
                    ]
                }
            ]
        },
    )

    preferences: Annotated[list[PreferenceBody], Field(max_length=MOST_PREFERENCES)]


def _name_alone(action: Any) -> Any:
    return {"name": action} if isinstance(action, str) else action


class SocketMessage(RequestBody):
    """A client's WebSocket message, with at least one of `currentMessage`, `dialogueAct` and `lastAction`.

    `dialogueAct`: name of a flow to start. `lastAction`: the action that the user clicked.
    """

    currentMessage: PlainText | None = None  # noqa: N815  # the name is public API
    dialogueAct: Identifier | None = None  # noqa: N815
    lastAction: Annotated[Action, BeforeValidator(_name_alone)] | None = None  # noqa: N815
    conversation_id: str | None = None
    idempotency_key: IdempotencyKey | None = None
    if_busy: IfBusy | None = None
    timezone: Timezone | None = None
    locale: LocaleTag | None = None

    @model_validator(mode="after")
    def _something_to_do(self) -> SocketMessage:
        if self.currentMessage is None and self.dialogueAct is None and self.lastAction is None:
            raise ValueError("requires currentMessage, lastAction or dialogueAct")
        return self

    def turn_request(self) -> TurnRequest:
        """Return a turn with the text or, if there is no text, with the action or dialogue act."""
        text, action = self.currentMessage, None
        if text is None:
            action = self.lastAction or Action(name="start_flow", payload={"dact": self.dialogueAct})
        return TurnRequest(
            text=text,
            action=action,
            idempotency_key=self.idempotency_key,
            if_busy=self.if_busy,
            timezone=self.timezone,
            locale=self.locale,
        )


def schema_of(body: type[RequestBody]) -> dict[str, Any]:
    """Return a body's JSON Schema. It refers to definitions in the OpenAPI document."""
    schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return schema
