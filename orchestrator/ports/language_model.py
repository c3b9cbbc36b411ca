"""The port for language models: requests, replies and failures.

An adapter sends each request once. `orchestrator.models` adds retries, fallback, circuit breakers, budgets,
repair and endpoint profiles.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from orchestrator.errors import BudgetExceeded, ModelOutputInvalid, ModelUnavailable
from orchestrator.types import JsonObject, SessionId, TurnId

MODEL_FAILURES = (ModelUnavailable, ModelOutputInvalid, BudgetExceeded)
"""The errors raised when a model call yields no usable answer. A `ChatModel` raises only ModelUnavailable."""


class ChatRole(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Reasons why a model stopped generating. Unknown reasons become OTHER."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    """The provider's content filter withheld the answer."""
    REFUSAL = "refusal"
    """The model declined to answer."""
    OTHER = "other"


class Effort(StrEnum):
    """The reasoning effort to request from models that reason."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ToolChoice(StrEnum):
    """Modes of tool use. REQUIRED forces the model to call a tool."""

    AUTO = "auto"
    REQUIRED = "required"


class OutputMode(StrEnum):
    """Methods of requesting a JSON object, from the most to the least demanding for the endpoint."""

    SCHEMA = "schema"
    """The endpoint enforces the JSON Schema."""
    OBJECT = "object"
    """The endpoint enforces JSON, and the prompt contains the schema."""
    PROMPTED = "prompted"
    """Only the prompt asks for an object."""


class RequestField(StrEnum):
    """An optional part of a request that an endpoint can reject."""

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
    """A separate system message. If it is rejected, the first user message begins with the system prompt."""


@dataclass(frozen=True, slots=True)
class EndpointProfile:
    """An endpoint's features, learned from rejected requests.

    Args:
        output: the strictest output mode that was not rejected.
        renamed_token_limit: True if the endpoint expects `max_tokens` instead of `max_completion_tokens`, or
            vice versa.
        no_thought_with_tools: True if requests with tools must turn off reasoning.
        refused: request fields that the endpoint rejected.
    """

    output: OutputMode = OutputMode.SCHEMA
    renamed_token_limit: bool = False
    no_thought_with_tools: bool = False
    refused: frozenset[RequestField] = frozenset()

    def takes(self, field: RequestField) -> bool:
        return field not in self.refused


@dataclass(frozen=True, slots=True)
class Opaque:
    """An answer in its provider's format, with signatures and encrypted reasoning.

    Only the endpoint that created the answer receives `body`. Other endpoints receive the message's other fields.
    """

    endpoint: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it. `arguments` can be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a conversation with a model. `tool_call_id`: the call that a tool message answers."""

    role: ChatRole
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    opaque: Opaque | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered to the model.

    Args:
        parameters: the JSON Schema of the arguments, as sent to the model. The schema's type is ``object``.
        judged_by: the JSON Schema that validates the model's arguments. Default: `parameters`.
    """

    name: str
    description: str
    parameters: JsonObject
    judged_by: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The output format of a structured call. `name`: the prompt ID.

    `schema`: a JSON Schema that requires all of its properties and allows no others.
    """

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class CallMetadata:
    """The origin of a model call.

    The call log always includes this metadata. If configured, requests include it too.
    """

    prompt_id: str
    prompt_version: str
    session_id: SessionId
    turn_id: TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request to a model.

    Args:
        timeout_s: time limit for the complete answer, streamed or not, in seconds.
        tool_choice: the mode of tool use, or the name of the tool to call.
        effort: reasoning effort, or None for the model's default.
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
    """Token counts, as reported by the endpoint.

    `prompt_tokens` includes `cached_tokens`, and `completion_tokens` includes `reasoning_tokens`.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return the number of tokens to count against budgets."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete answer. `usage` is None if the endpoint doesn't report it."""

    text: str
    finish_reason: FinishReason
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    opaque: Opaque | None = None


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A part of a streamed tool call. `place`: the call's index in the answer.

    The first part contains the tool's name. Each part continues the arguments.
    """

    place: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A part of a streamed answer. The last parts have the finish reason, the usage and the opaque answer."""

    text: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    calls: tuple[CallPiece, ...] = ()
    opaque: Opaque | None = None

    @property
    def says_something(self) -> bool:
        """Return whether this delta has text or part of a call. The first deltas often have neither."""
        return bool(self.text or self.calls)


class ChatModel(Protocol):
    """An endpoint that serves one or more models."""

    @property
    def endpoint(self) -> str:
        """Return the endpoint's URL without secrets, for circuit breakers and messages."""
        ...

    def list_price(self, model: str, usage: Usage) -> float:
        """Return a call's list price in US dollars, or 0 if the price is unknown."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send a request and return the answer.

        Raises:
            ModelUnavailable: the call failed. Adapters convert all client-library errors to it.
        """
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream an answer. Raises ModelUnavailable, possibly after the first parts."""
        ...
