"""Probes of a model endpoint, with a small request for each feature that Parley uses."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrator.adapters.models.pool import read_endpoints
from orchestrator.adapters.models.providers import Endpoint, split_model
from orchestrator.errors import EndpointError, ModelRejected, ModelUnavailable
from orchestrator.models.config import DEFAULT_PROVIDER
from orchestrator.ports.language_model import (
    CallMetadata,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ChatRole,
    Effort,
    EndpointProfile,
    FinishReason,
    OutputMode,
    OutputSchema,
    RequestField,
    ToolCall,
    ToolChoice,
    ToolDefinition,
)
from orchestrator.settings import Settings
from orchestrator.types import JsonObject, SessionId, TurnId
from parley.diagnosis.finding import Finding, bad, note, well

WITHIN_S = 120.0
"""Timeout of a request, in seconds. A local server may first load its model."""
LONG_PROMPT = 6_000
"""Length of a long prompt in words, as in a long conversation."""
_BARE = EndpointProfile(
    output=OutputMode.PROMPTED, refused=frozenset(RequestField) - {RequestField.TOKEN_LIMIT}
)
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"color": {"type": "string", "enum": ["red", "green"]}},
    "required": ["color"],
    "additionalProperties": False,
}
_TOOL = ToolDefinition(
    "note_color",
    "Note one color.",
    {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]},
)


@dataclass(frozen=True, slots=True)
class Question:
    """A probe. `needed`: the consequence of a failure, or None if Parley works without the feature."""

    name: str
    request: ChatRequest
    streamed: bool = False
    calls: int = 0
    needed: str | None = None


def questions(model: str) -> Iterator[Question]:
    """Yield the probes, starting with the simplest. Each further probe adds one feature."""

    def ask(text: str, *takes: RequestField, **more: object) -> ChatRequest:
        profile = replace(_BARE, refused=_BARE.refused - {*takes})
        plain = ChatRequest(
            model=model,
            messages=(ChatMessage(ChatRole.SYSTEM, "Answer briefly."), ChatMessage(ChatRole.USER, text)),
            metadata=CallMetadata("doctor", "1", SessionId("doctor"), TurnId("doctor")),
            max_tokens=256,
            timeout_s=WITHIN_S,
            profile=profile,
        )
        return replace(plain, **more)

    schema = OutputSchema("doctor", _SCHEMA)
    by_schema = replace(_BARE, output=OutputMode.SCHEMA)
    by_object = replace(_BARE, output=OutputMode.OBJECT)
    tools = (_TOOL,)
    yield Question("plain", ask("Say hello."), needed="no prompt is answered")
    yield Question("system role", ask("Say hello.", RequestField.SYSTEM_ROLE))
    yield Question("schema", ask("Pick a color.", output=schema, profile=by_schema))
    yield Question("json object", ask("Pick a color.", output=schema, profile=by_object))
    yield Question("prompted json", ask("Pick a color.", output=schema), needed="messages are not understood")
    yield Question("tool", ask("Note the color red.", tools=tools), calls=1, needed="skills do not run")
    yield Question(
        "required tool",
        ask("Hello.", RequestField.TOOL_CHOICE, tools=tools, tool_choice=ToolChoice.REQUIRED),
        calls=1,
    )
    yield Question("parallel tools", ask("Note red, and note green, both now.", tools=tools), calls=2)
    yield Question("stream", ask("Count to five.", RequestField.STREAM), streamed=True)
    yield Question(
        "stream counts",
        ask("Count to five.", RequestField.STREAM, RequestField.STREAM_USAGE),
        streamed=True,
    )
    yield Question(
        "reasoning", ask("Is 91 a prime?", RequestField.EFFORT, effort=Effort.LOW, max_tokens=1024)
    )
    yield Question("metadata", ask("Say hello.", RequestField.METADATA))
    yield Question(
        "long prompt", ask("tree " * LONG_PROMPT + "\nSay hello."), needed="long conversations fail"
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a probe. `problem`: the fault, or None if the probe succeeded."""

    question: Question
    problem: str | None
    took_s: float
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    final: bool = False

    def as_finding(self) -> Finding:
        counted = (
            "no counts"
            if self.prompt_tokens is None
            else f"{self.prompt_tokens} + {self.completion_tokens} tokens"
        )
        name, needed = f"model: {self.question.name}", self.question.needed
        if self.problem is None:
            return well(name, f"accepted, {self.took_s:.1f} s, {counted}")
        if needed is None:
            return note(name, f"{self.problem}, {self.took_s:.1f} s", "Parley works without it")
        return bad(name, f"{self.problem}, {self.took_s:.1f} s", needed)


async def probe(client: ChatModel, model: str) -> AsyncGenerator[Outcome, None]:
    """Run all probes. Stop if the simplest probe fails permanently or gets no response."""
    renamed = False
    for question in questions(model):
        outcome, renamed = await _ask(client, question, renamed=renamed)
        yield outcome
        if outcome.final and question.name == "plain":
            return


async def _ask(client: ChatModel, question: Question, *, renamed: bool) -> tuple[Outcome, bool]:
    """Run a probe. Try both names of the token limit."""
    request = question.request
    request = replace(request, profile=replace(request.profile, renamed_token_limit=renamed))
    began = time.monotonic()
    try:
        reply = await _reply(client, question, request)
    except ModelRejected as error:
        field = error.said.field if error.said is not None else None
        if field == RequestField.TOKEN_LIMIT and not renamed:
            return await _ask(client, question, renamed=True)
        return Outcome(question, _describe(error), time.monotonic() - began, final=error.final), renamed
    except ModelUnavailable as error:
        ends = error.final or error.said is None or error.said.status is None
        return Outcome(question, _describe(error), time.monotonic() - began, final=ends), renamed
    took_s, usage = time.monotonic() - began, reply.usage
    counts = (None, None) if usage is None else (usage.prompt_tokens, usage.completion_tokens)
    return Outcome(question, _find_fault(question, reply), took_s, *counts), renamed


async def _reply(client: ChatModel, question: Question, request: ChatRequest) -> ChatReply:
    if not question.streamed:
        return await client.complete(request)
    text, usage, pieces = "", None, 0
    async for delta in client.stream(request):
        text, usage = text + delta.text, delta.usage or usage
        pieces += delta.says_something
    return ChatReply(text, FinishReason.STOP, request.model, usage=usage)


def _find_fault(question: Question, reply: ChatReply) -> str | None:
    """Return what is wrong with an answer, or None."""
    if question.calls and len(reply.tool_calls) < question.calls:
        return _count(reply.tool_calls, question.calls)
    if question.request.output is not None and '"color"' not in reply.text.replace(" ", ""):
        return "returned something other than the object"
    if not question.calls and not reply.text.strip():
        return "returned nothing; raise the token limit if the model reasons"
    if question.name == "stream counts" and reply.usage is None:
        return "not counted"
    return None


def _count(calls: Sequence[ToolCall], wanted: int) -> str:
    return "no tool was called" if not calls else f"{len(calls)} of {wanted} calls in one response"


def _describe(error: ModelUnavailable) -> str:
    said = error.said or EndpointError("")
    named = ", ".join(str(one) for one in (said.status, said.code, said.field) if one is not None)
    return f"{error.code} ({named or str(error).removesuffix('.')})"


async def probe_configured(settings: Settings) -> AsyncGenerator[Finding, None]:
    """Probe the model in PARLEY_MODEL. Raises ConfigurationError if its client can't be opened."""
    # Slow to import.
    from orchestrator.adapters.models.chat import LibraryChat  # noqa: PLC0415

    endpoints = read_endpoints(settings)
    provider, model = split_model(settings.model, endpoints)
    endpoint = endpoints.get(provider or DEFAULT_PROVIDER)
    if endpoint is None:
        yield note(
            "model", "no endpoint is configured", "set OPENAI_API_KEY, OPENAI_BASE_URL or PARLEY_MODEL"
        )
        return
    client = LibraryChat(endpoint)
    yield note("model", f"testing {model} at {client.endpoint}{_forms(endpoint)}")
    try:
        async for outcome in probe(client, model):
            yield outcome.as_finding()
    finally:
        await client.aclose()


def _forms(endpoint: Endpoint) -> str:
    """Describe the endpoint's provider."""
    if endpoint.is_compatible:
        return "; only its URL is known"
    return f", with the known limits of {endpoint.provider}"


def examine_model(settings: Settings) -> Iterator[Finding]:
    """Yield the findings of `probe_configured` as they arrive."""
    with asyncio.Runner() as runner:
        findings = probe_configured(settings)
        while (found := runner.run(_next(findings))) is not None:
            yield found


async def _next(findings: AsyncGenerator[Finding, None]) -> Finding | None:
    return await anext(findings, None)
