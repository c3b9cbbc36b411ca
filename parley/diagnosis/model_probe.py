"""Probe a model endpoint, with a small request for each feature that Parley uses."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace

from orchestrator.adapters.models.pool import read_endpoints
from orchestrator.adapters.models.providers import split_model
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
    ToolChoice,
    ToolDefinition,
)
from orchestrator.settings import Settings
from orchestrator.types import JsonObject, SessionId, TurnId
from parley.diagnosis.finding import Finding, bad, note, well

WITHIN_S = 120.0
"""Timeout of a request, in seconds. A local server may first load its model."""
LONG_PROMPT = 6_000
"""Length of the long prompt, in words."""
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
    """A probe. `calls`: number of tool calls that the reply must contain.

    `needed`: the consequence if the probe fails, or None if Parley works without the probed feature.
    """

    name: str
    request: ChatRequest
    streamed: bool = False
    calls: int = 0
    needed: str | None = None


def questions(model: str) -> Iterator[Question]:
    """Yield the probes. The first one uses no optional features, and each of the others uses one or two."""

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
    yield Question("plain", ask("Say hello."), needed="Parley can't use this model")
    yield Question("system role", ask("Say hello.", RequestField.SYSTEM_ROLE))
    yield Question("schema", ask("Pick a color.", output=schema, profile=by_schema))
    yield Question("json object", ask("Pick a color.", output=schema, profile=by_object))
    yield Question(
        "prompted json", ask("Pick a color.", output=schema), needed="the model can't interpret messages"
    )
    yield Question("tool", ask("Note the color red.", tools=tools), calls=1, needed="skills can't run")
    yield Question(
        "required tool",
        ask("Hello.", RequestField.TOOL_CHOICE, tools=tools, tool_choice=ToolChoice.REQUIRED),
        calls=1,
    )
    yield Question("parallel tools", ask("Note red, and note green, both now.", tools=tools), calls=2)
    yield Question("stream", ask("Count to five.", RequestField.STREAM), streamed=True)
    yield Question(
        "stream token counts",
        ask("Count to five.", RequestField.STREAM, RequestField.STREAM_USAGE),
        streamed=True,
    )
    yield Question(
        "reasoning", ask("Is 91 a prime?", RequestField.EFFORT, effort=Effort.LOW, max_tokens=1024)
    )
    yield Question("metadata", ask("Say hello.", RequestField.METADATA))
    yield Question(
        "long prompt", ask("tree " * LONG_PROMPT + "\nSay hello."), needed="long conversations will fail"
    )


async def probe(client: ChatModel, model: str) -> AsyncGenerator[Finding, None]:
    """Send all probes and yield their findings. Stop if the first probe fails permanently or gets no response."""
    renamed = False
    for question in questions(model):
        began, name = time.monotonic(), f"model: {question.name}"
        request = _renamed(question.request, renamed)
        try:
            try:
                reply = await _reply(client, question, request)
            except ModelRejected as error:
                if renamed or error.said is None or error.said.field != RequestField.TOKEN_LIMIT:
                    raise
                renamed = True
                reply = await _reply(client, question, _renamed(request, renamed))
        except ModelUnavailable as error:
            problem, counted = _describe(error), "no token counts"
            ends = error.final or error.said is None or error.said.status is None
        else:
            problem, ends = _find_fault(question, reply), False
            usage = reply.usage
            counted = (
                f"{usage.prompt_tokens} + {usage.completion_tokens} tokens" if usage else "no token counts"
            )
        took = f"{time.monotonic() - began:.1f} s"
        if problem is None:
            yield well(name, f"accepted, {took}, {counted}")
        elif question.needed is None:
            yield note(name, f"{problem}, {took}", "Parley works without this feature")
        else:
            yield bad(name, f"{problem}, {took}", question.needed)
        if ends and question.name == "plain":
            return


def _renamed(request: ChatRequest, renamed: bool) -> ChatRequest:
    """Return a copy of the request. `renamed`: True to swap the names `max_tokens` and `max_completion_tokens`."""
    return replace(request, profile=replace(request.profile, renamed_token_limit=renamed))


async def _reply(client: ChatModel, question: Question, request: ChatRequest) -> ChatReply:
    if not question.streamed:
        return await client.complete(request)
    text, usage = "", None
    async for delta in client.stream(request):
        text, usage = text + delta.text, delta.usage or usage
    return ChatReply(text, FinishReason.STOP, request.model, usage=usage)


def _find_fault(question: Question, reply: ChatReply) -> str | None:
    """Return the problem with a reply, or None if the reply is as expected."""
    if len(reply.tool_calls) < question.calls:
        made = len(reply.tool_calls)
        return f"made {made} of {question.calls} calls" if made else "no tool was called"
    if question.request.output is not None and '"color"' not in reply.text.replace(" ", ""):
        return "did not return the requested object"
    if not question.calls and not reply.text.strip():
        return "returned nothing; raise the token limit if the model reasons"
    if question.name == "stream token counts" and reply.usage is None:
        return "the stream had no token counts"
    return None


def _describe(error: ModelUnavailable) -> str:
    said = error.said or EndpointError("")
    named = ", ".join(str(one) for one in (said.status, said.code, said.field) if one is not None)
    return f"{error.code} ({named or str(error).removesuffix('.')})"


async def probe_configured(settings: Settings) -> AsyncGenerator[Finding, None]:
    """Probe the model in PARLEY_MODEL. If it has no endpoint, yield only a note.

    Raises ConfigurationError if the endpoint's settings are invalid or its client package is missing.
    """
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
    known = "no built-in profile" if endpoint.is_compatible else f"built-in profile: {endpoint.provider}"
    yield note("model", f"testing {model} at {client.endpoint}; {known}")
    try:
        async for found in probe(client, model):
            yield found
    finally:
        await client.aclose()


def examine_model(settings: Settings) -> Iterator[Finding]:
    with asyncio.Runner() as runner:
        findings = probe_configured(settings)
        while (found := runner.run(_next(findings))) is not None:
            yield found


async def _next(findings: AsyncGenerator[Finding, None]) -> Finding | None:
    return await anext(findings, None)
