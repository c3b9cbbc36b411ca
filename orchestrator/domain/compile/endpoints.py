"""Find problems in the manifest's HTTP endpoints and MCP servers, without connecting."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from orchestrator.domain.compile.problems import suggest
from orchestrator.domain.placeholders import (
    CALLERS_OWN,
    credential_placeholders,
    input_placeholders,
    variable_placeholders,
)
from orchestrator.domain.tool_schema import HttpEntry, McpEntry
from orchestrator.types import Json, is_list, is_object

Mistake: TypeAlias = tuple[str, str]
"""The affected key, and a description of the problem."""

OWN_HEADERS = frozenset(
    {"idempotency-key", "host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
_GAVE_UP = frozenset({408, 460, 499})
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_http_mistakes(entry: HttpEntry, inputs: Sequence[str], required: Sequence[str]) -> Iterator[Mistake]:
    """Yield each mistake in an endpoint's declaration.

    `inputs`: names of the tool's inputs. `required`: names of the mandatory inputs.
    """
    yield from _url_mistakes(entry.url)
    yield from _header_mistakes(entry.headers)
    yield from _error_mistakes(entry.errors, inputs)
    for name in CALLERS_OWN:
        if name in inputs:
            yield "url", f"{{{name}}} is reserved for the caller: rename the input"
    texts = [("url", entry.url), *(("headers", text) for text in entry.headers.values())]
    texts += [("query", text) for text in (entry.query or {}).values()]
    texts += [("body", text) for text in body_texts(entry.body)]
    for key, text in texts:
        for name in input_placeholders(text):
            if name not in inputs and name not in CALLERS_OWN:
                yield key, f"uses {{{name}}}, which is not in input_schema{suggest(name, list(inputs))}"
        yield from _misplaced_secrets(key, text)
    for name in input_placeholders(entry.url):
        if name in inputs and name not in required:
            yield "url", f"uses {{{name}}}, which must be required in input_schema"
    if entry.body is not None and entry.method in {"GET", "DELETE"}:
        yield "body", f"is not sent with {entry.method}"


def _misplaced_secrets(key: str, text: str) -> Iterator[Mistake]:
    if key in {"url", "body"} and variable_placeholders(text):
        yield key, "can't contain environment variables: put them in headers or query"
    if key != "headers" and credential_placeholders(text):
        yield key, "can't contain the user's credentials: put them in headers"


def _error_mistakes(errors: Mapping[int, str], inputs: Sequence[str]) -> Iterator[Mistake]:
    for status, text in errors.items():
        if not is_surely_not_done(status):
            yield (
                "errors",
                f"{status} does not show whether the call was executed, so it can't have a message",
            )
        if not text.strip():
            yield "errors", f"{status} needs a message for the user"
        for name in input_placeholders(text):
            if name not in inputs:
                yield (
                    "errors",
                    f"uses {{{name}}}, which is not in input_schema{suggest(name, list(inputs))}",
                )


def is_surely_not_done(status: int) -> bool:
    """Return whether a status proves that a request was not executed.

    A redirect can mean success, for example 303 after a creation. 408, 460 and 499 come from servers and
    proxies that stopped waiting.
    """
    return 400 <= status < 500 and status not in _GAVE_UP


def find_mcp_mistakes(entry: McpEntry) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each mistake in an MCP server entry, as the path of the wrong key (or ()) and a message."""
    if not (entry.tool and (entry.url or entry.command)):
        yield (), "needs a tool, and a url or command for its server"
    if entry.url and entry.command:
        yield (), "has both url and command; use one of them"
    if entry.url is not None:
        for _, message in _url_mistakes(entry.url):
            yield ("url",), message
        if any(
            find(entry.url) for find in (input_placeholders, variable_placeholders, credential_placeholders)
        ):
            yield ("url",), "can't have placeholders, because all calls share it"
    yield from _server_secret_mistakes(entry)


def _server_secret_mistakes(entry: McpEntry) -> Iterator[tuple[tuple[str, ...], str]]:
    for _, message in _header_mistakes(entry.headers):
        yield ("headers",), message
    if entry.headers and entry.command:
        yield ("headers",), "require a url; for a command, use environment"
    if any(input_placeholders(text) or credential_placeholders(text) for text in entry.headers.values()):
        yield ("headers",), "are the same for all calls: they can contain only environment variables"
    for name in entry.environment:
        if not _VARIABLE.fullmatch(name):
            yield (
                ("environment",),
                f"{name!r} is not a valid variable name; list names without values",
            )


def body_texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for item in value.values():
            yield from body_texts(item)
    elif is_list(value):
        for item in value:
            yield from body_texts(item)


def _url_mistakes(url: str) -> Iterator[Mistake]:
    parts = _split(url)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        yield "url", "should begin with http:// or https:// and name a host"
        return
    if input_placeholders(parts.netloc) or variable_placeholders(parts.netloc):
        yield "url", "can't have placeholders in the host: put inputs in the path"
    if "@" in parts.netloc:
        yield "url", "can't contain credentials: send them in a header that uses an environment variable"
    if parts.fragment:
        yield "url", "can't have a fragment (#…)"
    if input_placeholders(parts.query):
        yield "url", "can't have inputs after the ?: put them in query"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _header_mistakes(headers: Mapping[str, str]) -> Iterator[Mistake]:

    for name in headers:
        if not _HEADER.fullmatch(name):
            yield "headers", f"{name!r} is not a valid header name"
        elif name.lower() in OWN_HEADERS:
            yield "headers", f"{name} is set for every call: remove it"
