"""The port to language models: one request and its possible results.

An implementation sends one request once. Retries, fallback, breakers, budgets, repair and endpoint profiles
belong to `orchestrator.models`. Failures are the closed set `MODEL_FAILURES`.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from orchestrator.errors import BudgetExceeded, ModelOutputInvalid, ModelUnavailable
from orchestrator.types import JsonObject, SessionId, TurnId

MODEL_FAILURES = (ModelUnavailable, ModelOutputInvalid, BudgetExceeded)
"""All failures of a call without a usable answer. `ChatModel` only raises the first."""


class ChatRole(StrEnum):
    """Roles of a request's messages."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """The reason why a model stopped. Unknown reasons become OTHER."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    """The provider's filter withheld the answer."""
    REFUSAL = "refusal"
    """The model declined to answer."""
    OTHER = "other"


class Effort(StrEnum):
    """Reasoning effort; ignored by models without reasoning."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ToolChoice(StrEnum):
    """The model's freedom to call a tool."""

    AUTO = "auto"
    REQUIRED = "required"


class OutputMode(StrEnum):
    """The way to request an object, in order of decreasing demands on the endpoint."""

    SCHEMA = "schema"
    """By JSON Schema, enforced by the endpoint."""
    OBJECT = "object"
    """As any JSON object; the schema is part of the prompt."""
    PROMPTED = "prompted"
    """In the prompt only."""


class RequestField(StrEnum):
    """Optional parts of a request that an endpoint can reject."""

    METADATA = "metadata"
    STREAM_USAGE = "stream_usage"
    OUTPUT = "output"
    STRICT = "strict"
    TOKEN_LIMIT = "token_limit"  # noqa: S105
    TEMPERATURE = "temperature"
    EFFORT = "effort"
    TOOL_CHOICE = "tool_choice"
    STREAM = "stream"
    SYSTEM_ROLE = "system_role"
    """A separate system message; without it, the system's text opens the first user message."""


@dataclass(frozen=True, slots=True)
class EndpointProfile:
    """An endpoint's features, learned from rejections; the adapter knows the rest.

    `output`: the best output mode not rejected. `renamed_token_limit`: the limit is called `max_tokens`
    instead of `max_completion_tokens`, or the reverse. `no_thought_with_tools`: tools require reasoning to
    be off.
    """

    output: OutputMode = OutputMode.SCHEMA
    renamed_token_limit: bool = False
    no_thought_with_tools: bool = False
    refused: frozenset[RequestField] = frozenset()

    def takes(self, field: RequestField) -> bool:
        return field not in self.refused


@dataclass(frozen=True, slots=True)
class Opaque:
    """An answer in its provider's form, with signatures and encrypted reasoning.

    Only sent to the endpoint that wrote it; others receive the message's own fields.
    """

    endpoint: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is text that may be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message; `tool_call_id`: the call that a tool message answers."""

    role: ChatRole
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    opaque: Opaque | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered to the model.

    `parameters`: JSON Schema of type object, as sent to the model. `judged_by`: the schema that the
    arguments must match. Default: `parameters`.
    """

    name: str
    description: str
    parameters: JsonObject
    judged_by: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The output of a structured call; `name` is the prompt ID. The schema is closed, and all members are required."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class CallMetadata:
    """A call's IDs. Our own record always has them; endpoints receive them if they support metadata."""

    prompt_id: str
    prompt_version: str
    session_id: SessionId
    turn_id: TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request. `timeout_s`: limit for the complete answer, streamed or not.

    `tool_choice`: whether to call one of `tools`, or the name of the tool to call. `effort`: reasoning
    effort, or None for the model's default.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    metadata: CallMetadata
    max_tokens: int
    timeout_s: float
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice | str = ToolChoice.AUTO
    output: OutputSchema | None = None
    temperature: float | None = None
    effort: Effort | None = None
    profile: EndpointProfile = field(default_factory=EndpointProfile)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of the endpoint.

    `cached_tokens` are part of the prompt's, `reasoning_tokens` of the completion's.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return the sum, which budgets count."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete answer. `usage`: None if the endpoint does not count."""

    text: str
    finish_reason: FinishReason
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    opaque: Opaque | None = None


@dataclass(frozen=True, slots=True)
class CallPiece:
    """Part of the call at this index; the first part has the name, each part continues the arguments."""

    place: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """Part of a streamed answer; the last ones have the reason, the usage and the opaque answer."""

    text: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    calls: tuple[CallPiece, ...] = ()
    opaque: Opaque | None = None

    @property
    def says_something(self) -> bool:
        """Return whether the delta has text or part of a call; the first ones often have neither."""
        return bool(self.text or self.calls)


class ChatModel(Protocol):
    """An endpoint for any number of models."""

    @property
    def endpoint(self) -> str:
        """Return the URL without secrets, which identifies the breaker and appears in messages."""
        ...

    def list_price(self, model: str, usage: Usage) -> float:
        """Return the provider's published price in US dollars, or 0 if none is known."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request.

        Raises:
            ModelUnavailable: or a subclass; never a library's error.
        """
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream an answer; raises like `complete`, at any time."""
        ...
