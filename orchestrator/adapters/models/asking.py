"""Convert a model request to Pydantic AI's settings, tools and output mode."""

from dataclasses import asdict
from typing import Any, cast

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition as LibraryTool

from orchestrator.adapters.models.building import is_openai_client
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.ports.language_model import (
    ChatRequest,
    Effort,
    OutputMode,
    OutputSchema,
    RequestField,
    ToolChoice,
)
from orchestrator.types import JsonObject

_THOUGHT = {
    Effort.NONE: 0,
    Effort.MINIMAL: 1024,
    Effort.LOW: 2048,
    Effort.MEDIUM: 10_000,
    Effort.HIGH: 16_384,
}
"""Numbers of tokens to add to an answer's token limit for thinking, by effort.

For Anthropic models, these numbers are Pydantic AI's thinking budgets, which must stay below the limit.
"""
PROMPT_HEADER = "X-Parley-Prompt"
"""Header with the prompt's name, for scripts and proxies. Providers ignore it."""
_TEMPLATE = (
    "Answer with one JSON object that fits this JSON Schema, and with nothing before or after it:\n{schema}"
)


def settings_for(endpoint: Endpoint, model: Model[Any], request: ChatRequest) -> ModelSettings:
    """Return the request's model settings, omitting settings that the endpoint rejects."""
    takes, effort = request.profile.takes, _effort(request)
    wanted: JsonObject = {"timeout": request.timeout_s}
    if takes(RequestField.TOKEN_LIMIT):
        wanted["max_tokens"] = request.max_tokens + _room_for_thought(model, effort)
    if request.temperature is not None and takes(RequestField.TEMPERATURE):
        wanted["temperature"] = request.temperature
    if effort is not None:
        wanted |= _thinking(endpoint, effort)
    if (forced := _forced_tool(request)) is not None:
        wanted["tool_choice"] = [forced]
    wanted["max_retries"] = 0
    if is_openai_client(model):
        wanted |= _openai_settings(endpoint, request)
    known = {name: value for name, value in wanted.items() if name not in model.unsupported_settings}
    return cast("ModelSettings", known)


def _openai_settings(endpoint: Endpoint, request: ChatRequest) -> JsonObject:
    body = dict(endpoint.extra_body)
    settings: JsonObject = {"extra_headers": {PROMPT_HEADER: request.metadata.prompt_id}}
    may_store = endpoint.provider.startswith(("openai", "azure"))
    if may_store:
        settings["openai_store"] = endpoint.store
        # Pydantic AI requests cache diagnostics by default, but Parley doesn't read them.
        settings["openai_prompt_cache_diagnostics"] = False
    # OpenAI accepts metadata only for requests that it stores.
    tells = endpoint.store if may_store else endpoint.metadata and endpoint.is_compatible
    if tells and request.profile.takes(RequestField.METADATA):
        body["metadata"] = asdict(request.metadata)
    return settings | ({"extra_body": body} if body else {})


def _effort(request: ChatRequest) -> Effort | None:
    if not request.profile.takes(RequestField.EFFORT):
        return None
    return Effort.NONE if request.tools and request.profile.no_thought_with_tools else request.effort


def _room_for_thought(model: Model[Any], effort: Effort | None) -> int:
    """Return the number of tokens to reserve for thinking, or 0 if the model doesn't think.

    Providers count thinking against the answer's limit.
    """
    if effort is None or not model.profile.get("supports_thinking", False):
        return 0
    return _THOUGHT[effort]


def _thinking(endpoint: Endpoint, effort: Effort) -> JsonObject:
    if endpoint.is_compatible:
        # For a model known only by URL, send the effort and remember a rejection: the model may not reason.
        return {"openai_reasoning_effort": effort.value}
    return {"thinking": False if effort is Effort.NONE else effort.value}


def _forced_tool(request: ChatRequest) -> str | None:
    if not request.tools or not request.profile.takes(RequestField.TOOL_CHOICE):
        return None
    return None if isinstance(request.tool_choice, ToolChoice) else request.tool_choice


def parameters_for(model: Model[Any], request: ChatRequest) -> ModelRequestParameters:
    """Return Pydantic AI's parameters for a request: its tools, or the best supported output mode."""
    if request.output is not None:
        return _output(model, request.output, request)
    tools = [
        LibraryTool(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters, strict=False
        )
        for tool in request.tools
    ]
    must = (
        bool(tools)
        and request.tool_choice != ToolChoice.AUTO
        and request.profile.takes(RequestField.TOOL_CHOICE)
    )
    return ModelRequestParameters(function_tools=tools, allow_text_output=not must)


def _output(model: Model[Any], output: OutputSchema, request: ChatRequest) -> ModelRequestParameters:
    strict = request.profile.takes(RequestField.STRICT)
    definition = OutputObjectDefinition(json_schema=output.schema, name=output.name, strict=strict)
    best, profile = request.profile.output, model.profile
    if best is OutputMode.SCHEMA and profile.get("supports_json_schema_output", False):
        return ModelRequestParameters(output_mode="native", output_object=definition)
    if best is OutputMode.SCHEMA and profile.get("supports_tools", True):
        tool = LibraryTool(
            name=output.name,
            description="The answer.",
            parameters_json_schema=output.schema,
            strict=False,
            kind="output",
        )
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    return ModelRequestParameters(
        output_mode="prompted", output_object=definition, prompted_output_template=_TEMPLATE
    )
