"""What is wrong with a tool's HTTP endpoint or MCP server, as far as the manifest shows it.

Nothing is contacted here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from orchestrator.domain.compile.problems import suggest
from orchestrator.domain.placeholders import input_placeholders, variable_placeholders
from orchestrator.domain.schema import HttpEntry, McpEntry
from orchestrator.types import Json, is_list, is_object

Mistake: TypeAlias = tuple[str, str]
"""The key it belongs to, and what is wrong."""

OWN_HEADERS = frozenset(
    {"idempotency-key", "host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_http_mistakes(entry: HttpEntry, inputs: Sequence[str], required: Sequence[str]) -> Iterator[Mistake]:
    """Look at an endpoint; `inputs` are the names of the tool's inputs, `required` those always given."""
    yield from _url_mistakes(entry.url)
    yield from _header_mistakes(entry.headers)
    texts = [("url", entry.url), *(("headers", text) for text in entry.headers.values())]
    texts += [("query", text) for text in (entry.query or {}).values()]
    texts += [("body", text) for text in body_texts(entry.body)]
    for key, text in texts:
        for name in input_placeholders(text):
            if name not in inputs:
                yield key, f"names {{{name}}}, which input_schema does not have{suggest(name, list(inputs))}"
        if key in {"url", "body"} and variable_placeholders(text):
            yield key, "may not hold environment variables: they belong in headers or query"
    for name in input_placeholders(entry.url):
        if name in inputs and name not in required:
            yield "url", f"names {{{name}}}, which input_schema should require"
    if entry.body is not None and entry.method in {"GET", "DELETE"}:
        yield "body", f"is not sent with {entry.method}"


def find_mcp_mistakes(entry: McpEntry) -> Iterator[tuple[tuple[str, ...], str]]:
    """Look at how an MCP server is reached. A mistake of the whole entry has an empty key."""
    if not (entry.tool and (entry.url or entry.command)):
        yield (), "should name a tool, and its server by url or command"
    if entry.url and entry.command:
        yield (), "is reached by url or by command; this one has both"
    if entry.url is not None:
        for _, message in _url_mistakes(entry.url):
            yield ("url",), message
        if input_placeholders(entry.url) or variable_placeholders(entry.url):
            yield ("url",), "is one for all calls: it has no placeholders"
    yield from _server_secret_mistakes(entry)


def _server_secret_mistakes(entry: McpEntry) -> Iterator[tuple[tuple[str, ...], str]]:
    for _, message in _header_mistakes(entry.headers):
        yield ("headers",), message
    if entry.headers and entry.command:
        yield ("headers",), "belong to a server reached by url; pass variables by environment"
    if any(input_placeholders(text) for text in entry.headers.values()):
        yield ("headers",), "are the same for all calls: they may name environment variables only"
    for name in entry.environment:
        if not _VARIABLE.fullmatch(name):
            yield ("environment",), f"{name!r} is no name of a variable; its value belongs in the environment"


def body_texts(value: Json) -> Iterator[str]:
    """All texts within a JSON value."""
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
        yield "url", "should name its host: inputs belong in the path"
    if "@" in parts.netloc:
        yield "url", "should hold no password: put it into a header, by the name of an environment variable"
    if parts.fragment:
        yield "url", "should have no fragment (#…)"
    if input_placeholders(parts.query):
        yield "url", "should have no inputs after the ?: they belong in query"


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
            yield "headers", f"{name!r} is no name of a header"
        elif name.lower() in OWN_HEADERS:
            yield "headers", f"{name} is set for every call and may not be given"
