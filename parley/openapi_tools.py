"""Generate a domain's `tools.yaml` from an OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx2
import yaml

from orchestrator.domain.compile.endpoints import is_surely_not_done
from orchestrator.domain.placeholders import CALLERS_OWN
from orchestrator.errors import InvalidInput, Unavailable
from orchestrator.types import Json, JsonObject, is_list, is_object

METHODS: Final = ("get", "post", "put", "patch", "delete")
DEEPEST: Final = 12
"""Maximum depth of nested schemas and of chained references. Deeper schemas accept any value."""
_DROPPED: Final = frozenset(
    {"title", "examples", "example", "default", "discriminator", "xml", "externalDocs"}
)
_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")


def read_document(source: str) -> JsonObject:
    """Read an OpenAPI document from a URL or a file.

    Raises Unavailable if it can't be read, or InvalidInput if it is not an OpenAPI document.
    """
    try:
        if urlsplit(source).scheme in {"http", "https"}:
            answer = httpx2.get(source, timeout=20, follow_redirects=True)
            answer.raise_for_status()
            text = answer.text
        else:
            text = Path(source).read_text(encoding="utf-8")
    except (httpx2.HTTPError, OSError) as error:
        raise Unavailable(f"{source} cannot be read: {error}") from error
    try:
        document: Json = yaml.safe_load(text)  # YAML includes JSON
    except yaml.YAMLError as error:
        raise InvalidInput(f"{source} is neither JSON nor YAML.", field="source") from error
    if not is_object(document) or not is_object(document.get("paths")):
        raise InvalidInput(f"{source} is not an OpenAPI document: `paths` is missing.", field="source")
    return document


def make_tools(document: JsonObject, source: str) -> dict[str, JsonObject]:
    """Return one manifest entry per operation, by tool ID. `source`: URL or path of the document."""
    base = _base_url(document, source)
    tools: dict[str, JsonObject] = {}
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for method in METHODS:
            if is_object(operation := item.get(method)):
                tool_id = _tool_id(operation, method, path)
                tools[tool_id] = _Operation(document, base, path, method, operation, shared).entry()
    return tools


def write_tools(tools: Mapping[str, JsonObject]) -> str:
    """Return the entries as `tools.yaml` text."""
    return yaml.safe_dump({"tools": dict(tools)}, sort_keys=False, allow_unicode=True, width=110)


class _Operation:
    """An OpenAPI operation. Its path parameters, query parameters and body members become a tool's inputs."""

    def __init__(
        self, document: JsonObject, base: str, path: str, method: str, operation: JsonObject, shared: Json
    ) -> None:
        self._document = document
        self._url = base + path
        self._method = method
        self._operation = operation
        own = operation.get("parameters", [])
        self._parameters = [self._resolve(one) for one in (*shared, *own)]

    def entry(self) -> JsonObject:
        properties, required, query = self._inputs()
        body = self._body()
        names = {name: _input_name(name) for name in body.get("properties", {})}
        for name, schema in body.get("properties", {}).items():
            properties[names[name]] = schema
            if name in body.get("required", []):
                required.append(names[name])
        http: JsonObject = {"method": self._method.upper(), "url": _TEMPLATE.sub(_rename, self._url)}
        if query:
            http["query"] = query
        if names:
            http["body"] = {name: f"{{{renamed}}}" for name, renamed in names.items()}
        output = self._output(http)
        if errors := dict(self._errors()):
            http["errors"] = errors
        summary = self._operation.get("summary") or self._operation.get("operationId") or self._url
        inputs: JsonObject = {"type": "object", "additionalProperties": False, "properties": properties}
        return {
            "name": summary,
            "description": " ".join((self._operation.get("description") or summary).split()),
            "http": http,
            "idempotent": self._method == "get",
            "input_schema": {**inputs, **({"required": required} if required else {})},
            "output_schema": output,
        }

    def _inputs(self) -> tuple[JsonObject, list[str], dict[str, str]]:
        """Return the schemas of path and query parameters, the required input names, and the query template."""
        properties: JsonObject = {}
        required: list[str] = []
        query: dict[str, str] = {}
        for one in self._parameters:
            if one.get("in") not in {"path", "query"}:
                continue
            name = _input_name(one["name"])
            if one["in"] == "query":
                query[one["name"]] = f"{{{name}}}"
            if name in CALLERS_OWN:
                continue
            properties[name] = self._schema(one.get("schema", {}))
            if one.get("required") or one["in"] == "path":
                required.append(name)
        return properties, required, query

    def _body(self) -> JsonObject:
        body = self._resolve(self._operation.get("requestBody", {}))
        schema = self._schema(body.get("content", {}).get("application/json", {}).get("schema", {}))
        properties = {
            name: one for name, one in schema.get("properties", {}).items() if name not in CALLERS_OWN
        }
        return {**schema, "properties": properties}

    def _output(self, http: JsonObject) -> JsonObject:
        responses: JsonObject = self._operation.get("responses", {})
        found = next((one for status, one in responses.items() if str(status).startswith("2")), {})
        content = self._resolve(found).get("content", {})
        schema = self._schema(content.get("application/json", {}).get("schema", {}))
        if schema.get("type", "object") == "object":
            return {"type": "object", **schema}
        http["wrap_as"] = "items" if schema["type"] == "array" else "value"
        return {"type": "object", "required": [http["wrap_as"]], "properties": {http["wrap_as"]: schema}}

    def _errors(self) -> Iterator[tuple[int, str]]:
        """Yield the status and description of each error, except 422, that rules out a side effect of the call."""
        for status, response in self._operation.get("responses", {}).items():
            text = self._resolve(response).get("description", "").strip()
            if str(status).isdecimal() and is_surely_not_done(int(status)) and text and int(status) != 422:
                yield int(status), text.replace("{", "(").replace("}", ")")

    def _schema(self, schema: Json, depth: int = 0) -> JsonObject:
        """Return a schema with references resolved and without the keywords in `_DROPPED`."""
        resolved = self._resolve(schema)
        if depth > DEEPEST:
            return {}
        found: JsonObject = {}
        for key, value in resolved.items():
            if key in _DROPPED:
                continue
            if key in {"properties", "patternProperties"} and is_object(value):
                found[key] = {name: self._schema(one, depth + 1) for name, one in value.items()}
            elif is_list(value):
                found[key] = [self._schema(one, depth + 1) if is_object(one) else one for one in value]
            else:
                found[key] = self._schema(value, depth + 1) if is_object(value) else value
        return found

    def _resolve(self, part: Json) -> JsonObject:
        """Return `part` with references resolved, or {} if the result is not an object."""
        for _ in range(DEEPEST):
            if not is_object(part) or "$ref" not in part:
                break
            found: Json = self._document
            for step in str(part["$ref"]).removeprefix("#/").split("/"):
                found = found.get(step.replace("~1", "/").replace("~0", "~"), {}) if is_object(found) else {}
            part = found
        return part if is_object(part) else {}


def _base_url(document: JsonObject, source: str) -> str:
    servers = document.get("servers") or [{"url": "/"}]
    url = str(servers[0].get("url", "/"))
    if urlsplit(url).scheme:
        return url.rstrip("/")
    if urlsplit(source).scheme not in {"http", "https"}:
        raise InvalidInput(
            "The document doesn't specify a server URL; pass the document's URL instead of a file.",
            field="source",
        )
    return urljoin(source, url).rstrip("/")


def _tool_id(operation: JsonObject, method: str, path: str) -> str:
    """Return the operation ID, or path and method without it, in snake case. A single word gets the method added."""
    given = operation.get("operationId") or f"{_TEMPLATE.sub('', path)}_{method}"
    name = _snake(given)
    return name if "_" in name else f"{name}_{method}"


def _input_name(name: str) -> str:
    return _snake(name)


def _rename(match: re.Match[str]) -> str:
    return f"{{{_input_name(match[1])}}}"


def _snake(text: Any) -> str:
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", str(text))
    name = re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")
    return name if name[:1].isalpha() else f"x_{name}"
