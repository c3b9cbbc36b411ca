"""The port to language models: one chat-completions request and what may come back.

An implementation sends one request once. Retries, fallback, breakers, budgets and repair belong
to `orchestrator.models`. Failures are the closed set `MODEL_FAILURES`.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from orchestrator.errors import BudgetExceeded, ModelOutputInvalid, ModelUnavailable
from orchestrator.types import JsonObject, SessionId, TurnId

MODEL_FAILURES = (ModelUnavailable, ModelOutputInvalid, BudgetExceeded)
"""Every way in which a call can end without a usable answer. `ChatModel` raises only the first."""


class ChatRole(StrEnum):
    """Who speaks in a chat-completions request."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """Why the model stopped. Reasons that the API adds later become OTHER."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is its text, which may not be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a request; `tool_call_id` names the call that a message of a tool answers."""

    role: ChatRole
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered to the model; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """A structured call's answer; `name` is the prompt identifier."""

    name: str
    schema: JsonObject
    strict: bool = False


@dataclass(frozen=True, slots=True)
class CallMetadata:
    """Identifiers that every request carries on the wire, so that a script can stand in for a model."""

    prompt_id: str
    prompt_version: str
    session_id: SessionId
    turn_id: TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One chat-completions request. `timeout_s` bounds the whole answer, streamed or not."""

    model: str
    messages: tuple[ChatMessage, ...]
    metadata: CallMetadata
    max_tokens: int
    timeout_s: float
    tools: tuple[ToolDefinition, ...] = ()
    output: OutputSchema | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def total_tokens(self) -> int:
        """Both together: what budgets count."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A whole answer. `usage` is None when the endpoint does not count."""

    text: str
    finish_reason: FinishReason
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of the call at this place; the first one names the call, every one goes on with its arguments."""

    place: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a streamed answer; the last ones carry the reason and the usage."""

    text: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    calls: tuple[CallPiece, ...] = ()


class ChatModel(Protocol):
    """One endpoint that answers chat-completions requests for any number of models."""

    @property
    def endpoint(self) -> str:
        """The address, without secrets: names the breaker and appears in messages."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            ModelUnavailable: or one of its subclasses; never an error of a library.
        """
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Answer piece by piece; raises as `complete`, at the start or at any piece."""
        ...
