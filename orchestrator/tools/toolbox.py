"""A domain's tools: compiled schemas, methods and signatures, and the results and side effects of calls.

`runner` calls the tools.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from typing import TypeAlias

import orjson
from jsonschema_rs import ValidationError, Validator, validator_for

from orchestrator.context import TurnContext
from orchestrator.dialogue.specification import ToolUse
from orchestrator.domain.guarding import GuardedInput, read_guarded_inputs
from orchestrator.domain.model import ToolSpec
from orchestrator.errors import ConfigurationError, FailureCategory, Problem
from orchestrator.saying import Told, read_told, write_told
from orchestrator.turns.effect import Effect, LedgerStatus, fingerprint_effect
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.types import FlowId, Json, JsonObject, TenantId, ToolId, is_object

# A function that returns a tenant's service instances by class name.
Services = Callable[[TenantId], Mapping[str, object]]

# A function that returns what is wrong with a value, or None if the value is valid.
Check = Callable[[Json], str | None]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool from the manifest, with its compiled schemas.

    Attributes:
        fingerprint: a digest that changes with the tool's schemas or implementation.
        inputs: property names of the input schema.
        required: names of the mandatory inputs.
        guarded: inputs that contain code.
    """

    spec: ToolSpec
    has_effect: bool
    fingerprint: str
    inputs: tuple[str, ...]
    required: frozenset[str]
    check_input: Check
    check_output: Check
    guarded: tuple[GuardedInput, ...] = ()


class Toolbox:
    def __init__(self, tools: Mapping[ToolId, ToolSpec], services: Services) -> None:
        """Compile the schemas of all tools. Raises ConfigurationError that lists all invalid schemas."""
        problems: list[Problem] = []
        self._tools = {tool_id: _compile(spec, problems) for tool_id, spec in tools.items()}
        self._services = services
        self._methods: dict[tuple[TenantId, ToolId], BoundMethod] = {}
        if problems:
            raise ConfigurationError(problems)

    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def find(self, tool_id: ToolId) -> Tool | None:
        return self._tools.get(tool_id)

    def find_all(self, uses: Iterable[ToolUse]) -> list[Tool]:
        """Return the tools named in `uses`, except those missing from the manifest."""
        return [tool for use in uses if (tool := self._tools.get(use.tool_id)) is not None]

    def method(self, tenant_id: TenantId, tool: Tool) -> BoundMethod:
        """Return the tenant's implementation of a service tool.

        Raises ConfigurationError if it is missing.
        """
        key = (tenant_id, tool.spec.tool_id)
        found = self._methods.get(key)
        if found is None:
            found = self._methods[key] = _bind(tool.spec, self._services(tenant_id))
        return found


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """A service method. `wants_call`: True if its signature has a parameter `call`."""

    run: Callable[..., Json]
    is_async: bool
    wants_call: bool


def check_result(spec: ToolSpec, result: Json) -> str | None:
    """Return how a result violates the tool's output schema, or None if it doesn't."""
    return _compile_schema(spec, "output_schema", spec.output_schema, [])(result)


def _compile(spec: ToolSpec, problems: list[Problem]) -> Tool:
    properties: JsonObject = spec.input_schema.get("properties", {})
    return Tool(
        spec=spec,
        has_effect=spec.has_effect,
        fingerprint=_fingerprint(spec),
        inputs=tuple(properties),
        required=frozenset(spec.input_schema.get("required", ())),
        check_input=_compile_schema(spec, "input_schema", spec.input_schema, problems),
        check_output=_compile_schema(spec, "output_schema", spec.output_schema, problems),
        guarded=() if problems else read_guarded_inputs(spec.input_schema),
    )


def _fingerprint(spec: ToolSpec) -> str:
    parts = [spec.input_schema, spec.output_schema, spec.implementation, spec.target, spec.options]
    return digest_of(parts)[:16]


def digest_of(parts: Json) -> str:
    """Return a hash of JSON values that does not depend on the order of keys."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _compile_schema(spec: ToolSpec, part: str, schema: JsonObject, problems: list[Problem]) -> Check:
    try:
        validator = _make_validator(orjson.dumps(schema))
    except (ValidationError, ValueError) as error:
        problems.append(Problem(f"tools.yaml: tools.{spec.tool_id}.{part}", str(error).splitlines()[0]))
        return lambda _: "its schema is invalid"
    return partial(_first_mistake, validator)


@lru_cache(maxsize=1024)
def _make_validator(schema: bytes) -> Validator:
    return validator_for(
        orjson.loads(schema), validate_formats=True, mask="it"
    )  # values don't belong in logs


def _first_mistake(validator: Validator, value: Json) -> str | None:
    if validator.is_valid(value):
        return None
    error = next(iter(validator.iter_errors(value)))
    place = ".".join(str(part) for part in error.instance_path)
    return f"{place}: {error.message}" if place else error.message


def _bind(spec: ToolSpec, services: Mapping[str, object]) -> BoundMethod:
    place = f"tools.yaml: tools.{spec.tool_id}"
    class_name, _, method_name = spec.target.partition(".")
    method = getattr(services.get(class_name), method_name, None)
    if not callable(method):
        raise ConfigurationError([Problem(place, f"Unknown service method {spec.target!r}.")])
    return BoundMethod(
        run=method,
        is_async=inspect.iscoroutinefunction(method),
        wants_call="call" in inspect.signature(method).parameters,
    )


RETRYABLE = frozenset({FailureCategory.RATE_LIMIT, FailureCategory.TIMEOUT, FailureCategory.SERVER_ERROR})


@dataclass(frozen=True, slots=True)
class ToolData:
    data: JsonObject


@dataclass(frozen=True, slots=True)
class ToolError:
    """A tool call that failed.

    Attributes:
        undecided: True if the tool was stopped or failed unexpectedly, so that its side effect may have
            happened.
        retry_after_s: the delay before a retry in seconds, or None if unknown.
        alternative: inputs that would make the call succeed.
    """

    category: FailureCategory
    message: Told
    undecided: bool = False
    retry_after_s: float | None = None
    alternative: JsonObject = field(default_factory=JsonObject)

    @property
    def retryable(self) -> bool:
        return self.category in RETRYABLE


@dataclass(frozen=True, slots=True)
class ToolAccepted:
    """An accepted call whose result comes later (RT-32).

    Attributes:
        call: the call's idempotency key.
        reference: the call's ID for other systems.
        until: the time limit for the result, in Unix seconds.
    """

    call: str
    reference: str
    until: float
    message: str = ""


ToolAnswer: TypeAlias = ToolData | ToolError | ToolAccepted
ToolResult: TypeAlias = ToolAnswer | UnknownOutcome | NotBegun


def write_envelope(result: ToolAnswer) -> JsonObject:
    match result:
        case ToolData(data):
            return {"ok": True, "data": data}
        case ToolAccepted():
            return {"ok": True, "accepted": asdict(result)}
        case ToolError(category, message, undecided, _, alternative):
            error = {"category": category.value, "message": write_told(message), "undecided": undecided}
            return {"ok": False, "error": error | ({"alternative": alternative} if alternative else {})}


def read_envelope(body: Json) -> ToolAnswer:
    if "accepted" in body:
        return ToolAccepted(**body["accepted"])
    if body["ok"]:
        return ToolData(body["data"])
    error = body["error"]
    alternative = error.get("alternative", {})
    return ToolError(
        FailureCategory(error["category"]),
        read_told(error["message"]),
        error["undecided"],
        alternative=alternative,
    )


def make_effect(
    context: TurnContext,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    *,
    again: bool = False,
    compensates: str | None = None,
) -> Effect:
    """Describe a call's side effect.

    The fingerprint of a plan step's call stays the same when the plan is revised. `compensates`: the
    fingerprint of the side effect that the call undoes.
    """
    flow = context.state.stack.get(flow_id)
    instance = f"{flow.plan_id}:{flow.dact}" if flow is not None and flow.plan_id is not None else flow_id
    return Effect(
        fingerprint=fingerprint_effect(tool.spec.tool_id, arguments, instance, defaults=_defaults(tool)),
        flow_id=flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        slots={} if flow is None else flow.values(),
        judge=classify_effect,
        again=again,
        compensates=compensates,
    )


def classify_effect(envelope: Json) -> LedgerStatus:
    """Return the ledger status of a side effect, from the result of a finished call."""
    result = read_envelope(envelope)
    match result:
        case ToolData():
            return LedgerStatus.DONE
        case ToolAccepted():
            return LedgerStatus.AWAITED
        case ToolError(undecided=undecided):
            return LedgerStatus.UNKNOWN if undecided else LedgerStatus.FAILED


def _defaults(tool: Tool) -> JsonObject:
    properties: JsonObject = tool.spec.input_schema.get("properties", {})
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if is_object(schema) and "default" in schema
    }
