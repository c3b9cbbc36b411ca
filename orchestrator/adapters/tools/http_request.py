"""Build the HTTP request of a tool call from the tool's manifest entry and inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import orjson

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.placeholders import fill_placeholders, input_placeholders, sole_input
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.redaction import learn_secrets
from orchestrator.saying import say
from orchestrator.telemetry import get_logger
from orchestrator.types import Json, JsonObject, is_list, is_object, texts_in

_ABSENT: Any = object()
"""Marker for a part of the request whose input is missing."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request. `body`: JSON, or None if the request has no body."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


def build_request(
    tool: ToolSpec,
    arguments: JsonObject,
    call: ToolCall,
    environment: Mapping[str, str],
    credentials: Mapping[str, str] | None = None,
) -> HttpRequest:
    """Build a request by filling in the manifest's placeholders. `credentials`: the user's credentials.

    Raises ToolFailure for values that cannot be sent.
    """
    own: JsonObject = {"session_id": call.session_id, "callback_url": call.callback_url}
    if call.user_id is not None:
        own["user_id"] = call.user_id
    elif "user_id" in placeholders_of(tool):
        message = say("tool_needs_sign_in", tool=tool.name)
        raise ToolFailure(FailureCategory.AUTH_ERROR, message)
    filler = _Filler(tool, {**arguments, **own}, environment, credentials or {})
    options = tool.options
    method: str = options["method"]
    rest = {name: arguments[name] for name in _unused_inputs(tool) if name in arguments}
    takes_body = method not in {"GET", "DELETE"}
    query: Mapping[str, Json] = options["query"] or {}
    pairs = [(name, filler.fill(text)) for name, text in query.items()]
    if options["query"] is None and not takes_body:
        pairs += list(rest.items())
    body: Json = None
    if takes_body:
        body = _body(tool, filler, rest)
    headers = {name: filler.fill_header(text) for name, text in options["headers"].items()}
    return HttpRequest(
        method=method,
        url=_build_url(filler.fill_path(tool.target), pairs),
        headers={
            **{name: text for name, text in headers.items() if text is not None},
            "Accept": headers.get("Accept") or "application/json",
            "Accept-Encoding": "identity",
            "Idempotency-Key": call.idempotency_key,
            **({} if body is None else {"Content-Type": "application/json"}),
        },
        body=None if body is None else orjson.dumps(body),
    )


def _body(tool: ToolSpec, filler: _Filler, rest: JsonObject) -> Json:
    if tool.options["body"] is not None:
        return filler.fill(tool.options["body"])
    return rest if _unused_inputs(tool) else None


def placeholders_of(tool: ToolSpec) -> set[str]:
    """Return the names of all inputs that have placeholders in the tool's request."""
    options = tool.options
    texts: list[str] = [tool.target, *options["headers"].values(), *(options["query"] or {}).values()]
    texts.extend(texts_in(options["body"]))
    return {name for text in texts for name in input_placeholders(text)}


def _unused_inputs(tool: ToolSpec) -> list[str]:
    used = placeholders_of(tool)
    return [name for name in tool.input_schema.get("properties", {}) if name not in used]


def _build_url(url: str, pairs: Iterable[tuple[str, Json]]) -> str:
    parts = urlsplit(url)
    query = urlencode(
        [
            (name, write_value(item))
            for name, value in pairs
            if value is not _ABSENT
            for item in (value if is_list(value) else [value])
        ],
        quote_via=quote,
    )
    return urlunsplit(parts._replace(query="&".join(part for part in (parts.query, query) if part)))


def write_value(value: Json) -> str:
    """Return a string unchanged, and any other value as JSON text."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def read_secret(name: str, tool: ToolSpec, environment: Mapping[str, str]) -> str:
    """Return an environment variable, and hide its value in logs. Raises ToolFailure if it is missing."""
    value = environment.get(name)
    if value is None:
        _log.error("A tool's environment variable is missing.", tool=tool.tool_id, variable=name)
        raise ToolFailure(FailureCategory.AUTH_ERROR, say("tool_not_set_up", tool=tool.name))
    learn_secrets([value])
    return value


class _Filler:
    def __init__(
        self,
        tool: ToolSpec,
        arguments: JsonObject,
        environment: Mapping[str, str],
        credentials: Mapping[str, str],
    ) -> None:
        self._tool = tool
        self._credentials = credentials
        self._arguments = arguments
        self._environment = environment

    def fill(self, template: Json) -> Json:
        """Fill in the placeholders in a JSON value. Omit parts whose input is missing."""
        if isinstance(template, str):
            name = sole_input(template)
            if name is not None:
                return self._arguments.get(name, _ABSENT)
            if self._lacks_input(template):
                return _ABSENT
            return fill_placeholders(template, self._text, self._variable)
        if is_object(template):
            filled = ((key, self.fill(item)) for key, item in template.items())
            return {key: item for key, item in filled if item is not _ABSENT}
        if is_list(template):
            return [item for item in map(self.fill, template) if item is not _ABSENT]
        return template

    def fill_header(self, template: str) -> str | None:
        """Return a header's text, or None if one of its inputs is missing.

        Raises ToolFailure if the text contains characters that headers can't contain.
        """
        if self._lacks_input(template):
            return None
        give = self._credentials.__getitem__
        text = fill_placeholders(template, self._text, self._variable, give).strip()
        if not text.isprintable() or not text.isascii():
            raise self._refuse()
        return text

    def fill_path(self, template: str) -> str:
        """Return the tool's URL with its inputs filled in. An input can't leave its path segment.

        Raises ToolFailure if an input is missing or unsuitable.
        """
        if self._lacks_input(template):
            raise self._refuse()
        url = fill_placeholders(template, self._segment, self._variable)
        if any(segment in {".", ".."} for segment in urlsplit(url).path.split("/")):
            raise self._refuse()
        return url

    def _lacks_input(self, template: str) -> bool:
        return any(name not in self._arguments for name in input_placeholders(template))

    def _text(self, name: str) -> str:
        return write_value(self._arguments[name])

    def _segment(self, name: str) -> str:
        text = self._text(name)
        if not text:
            raise self._refuse()
        return quote(text, safe="")

    def _variable(self, name: str) -> str:
        return read_secret(name, self._tool, self._environment)

    def _refuse(self) -> ToolFailure:
        message = say("tool_bad_values", tool=self._tool.name)
        return ToolFailure(FailureCategory.VALIDATION_ERROR, message)
