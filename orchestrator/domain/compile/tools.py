"""Compile the manifest into tool specifications (PX-8): schemas, implementations and compensations."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args

from orchestrator.domain.compile.endpoints import check_http, check_mcp
from orchestrator.domain.compile.problems import Place, suggest
from orchestrator.domain.configuration import Resilience
from orchestrator.domain.guarding import find_mistakes
from orchestrator.domain.model import Implementation, ToolSpec
from orchestrator.domain.tool_schema import Tag, ToolEntry, ToolsFile
from orchestrator.types import JsonObject, ToolId, is_list, is_object

Services = Mapping[str, Any]
"""Public objects of a domain's services.py, by name."""


def compile_tools(manifest: Place, services: Services, resilience: Resilience) -> dict[ToolId, ToolSpec]:
    entries = manifest.problems.read(ToolsFile, manifest.file, manifest.file.body).tools
    schemas = [schema for one in entries.values() for schema in (one.input_schema, one.output_schema)]
    known = sorted({name for schema in schemas for name in input_names(schema)})
    for tool_id, entry in entries.items():
        place = manifest.at("tools", tool_id)
        for name in entry.approval_above:
            place.check_known(name, known, "input or output", "approval_above", name)
        _check_schemas(entry, place)
        for name, message in find_mistakes(entry.input_schema):
            place.add(message, "input_schema", "properties", name)
        _check_rows(entry, place.at("rows"))
        _check_implementation(entry, services, place)
        for key, other in (("compensation", entry.compensation), ("status_query", entry.status_query)):
            if other is not None:
                place.check_known(other, entries, "tool", key)
                if other in entries and entries[other].later is not None:
                    place.add(f"can't be {other}, which can answer later", key)
        _check_later(entry, place.at("later"))
    return {ToolId(tool_id): _specify(tool_id, entry, resilience) for tool_id, entry in entries.items()}


def input_names(schema: JsonObject) -> list[str]:
    """Return the names of the inputs or outputs that a schema describes."""
    properties = schema.get("properties")
    return list(properties) if is_object(properties) else []


def required_names(schema: JsonObject) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if is_list(required) else []


REMOTE_TAGS = ("communicates_externally", "receives_untrusted_input")
"""Default tags of a remote tool, unless the manifest explains in `trusted` why they don't apply."""


def _specify(tool_id: str, entry: ToolEntry, resilience: Resilience) -> ToolSpec:
    implementation, target, options = _target(entry)
    is_remote = implementation is not Implementation.SERVICE
    assumed = (
        tuple(tag for tag in REMOTE_TAGS if tag not in entry.tags) if is_remote and not entry.trusted else ()
    )
    tags = {*entry.tags, *assumed}
    return entry.fill(
        ToolSpec,
        tool_id=ToolId(tool_id),
        name=entry.name or tool_id.replace("_", " ").capitalize(),
        timeout_ms=entry.timeout_ms or resilience.tool_timeout_ms,
        implementation=implementation,
        target=target,
        **{tag: tag in tags for tag in get_args(Tag)},
        assumed=assumed,
        max_retries=resilience.tool_retries if entry.max_retries is None else entry.max_retries,
        options=options,
    )


def _check_later(entry: ToolEntry, place: Place) -> None:
    """Check a tool with `later`: polling needs a status query, and MCP servers don't support late results."""
    if entry.later is None:
        if entry.http is not None and "{callback_url}" in entry.http.model_dump_json():
            place.add("is missing: {callback_url} receives the result of a tool that answers later")
        return
    if entry.later.poll_s is not None and entry.status_query is None:
        place.add("needs a status_query to call", "poll_s")
    if entry.mcp is not None:
        place.add("is only for service and http tools; MCP tools answer immediately")


def _check_rows(entry: ToolEntry, place: Place) -> None:
    if entry.rows is None:
        return
    outputs = entry.output_schema.get("properties")
    listed = outputs.get(entry.rows.output) if is_object(outputs) else None
    if not is_object(listed):
        place.check_known(entry.rows.output, input_names(entry.output_schema), "output", "output")
        return
    items = listed.get("items")
    columns = input_names(items) if is_object(items) else []
    for key, name in (("key", entry.rows.key), *(("fields", name) for name in entry.rows.fields)):
        place.check_known(name, columns, "row field", key)


def _target(entry: ToolEntry) -> tuple[Implementation, str, JsonObject]:
    if entry.http is not None:
        return Implementation.HTTP, entry.http.url, entry.http.model_dump(mode="json", exclude={"url"})
    if entry.mcp is not None:
        return Implementation.MCP, entry.mcp.tool, entry.mcp.model_dump(mode="json", exclude={"tool"})
    return Implementation.SERVICE, entry.service or "", {}


def _check_schemas(entry: ToolEntry, place: Place) -> None:
    for key, schema in (("input_schema", entry.input_schema), ("output_schema", entry.output_schema)):
        if not schema:
            place.add("is missing: describe an object with a JSON Schema", key)
        elif place.at(key).check_schema(schema) and (
            missing := [name for name in required_names(schema) if name not in input_names(schema)]
        ):
            place.add(f"lists names that are missing from properties: {', '.join(missing)}", key, "required")


def _check_implementation(entry: ToolEntry, services: Services, place: Place) -> None:
    given = [key for key in ("service", "http", "mcp") if getattr(entry, key) is not None]
    if not given:
        place.add("is missing: declare what implements the tool (service, http or mcp)", "service")
    elif len(given) > 1:
        place.add(f"a tool has one implementation; this one has {' and '.join(given)}", given[1])
    elif entry.service is not None:
        _check_method(entry.service, entry.input_schema, services, place.at("service"))
    elif entry.http is not None:
        names, required = input_names(entry.input_schema), required_names(entry.input_schema)
        check_http(entry.http, names, required, place.at("http"))
    elif entry.mcp is not None:
        check_mcp(entry.mcp, place.at("mcp"))


def _check_method(target: str, schema: JsonObject, services: Services, place: Place) -> None:
    class_name, dot, method_name = target.partition(".")
    if not dot or not method_name:
        place.add("should be Class.method in services.py")
        return
    service = services.get(class_name)
    if not isinstance(service, type):
        classes = [name for name, value in services.items() if isinstance(value, type)]
        place.add(f"services.py has no class {class_name!r}{suggest(class_name, classes)}")
        return
    if not _can_be_made(service):
        place.add(f"{class_name} should accept one argument, the ServiceContext")
    method = getattr(service, method_name, None)
    if not callable(method):
        methods = [name for name in vars(service) if not name.startswith("_")]
        place.add(f"{class_name} in services.py has no method {method_name!r}{suggest(method_name, methods)}")
        return
    for message in _unfit(method, schema):
        place.add(f"{target} {message}")


def _can_be_made(service: type) -> bool:
    try:
        inspect.signature(service).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _unfit(method: Callable[..., Any], schema: JsonObject) -> list[str]:
    """Return a message for each input the method doesn't accept, and each parameter that no required input provides."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return []
    taken = {parameter.name for parameter in parameters} - {"call"}
    needed = {parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty}
    unknown = [name for name in input_names(schema) if name not in taken]
    unfilled = sorted(needed - {"call"} - set(required_names(schema)))
    return [f"does not accept {name!r}, which input_schema declares" for name in unknown] + [
        f"needs {name!r}, which input_schema does not require" for name in unfilled
    ]
