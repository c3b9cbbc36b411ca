"""Check the manifest's HTTP endpoints and MCP servers, without connecting."""

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from orchestrator.domain.compile.problems import Place, suggest
from orchestrator.domain.placeholders import (
    CALLERS_OWN,
    credential_placeholders,
    input_placeholders,
    variable_placeholders,
)
from orchestrator.domain.tool_schema import HttpEntry, McpEntry
from orchestrator.types import texts_in

OWN_HEADERS = frozenset(
    {"idempotency-key", "host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
_GAVE_UP = frozenset({408, 460, 499})
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_http(entry: HttpEntry, inputs: Sequence[str], required: Sequence[str], place: Place) -> None:
    """Check an endpoint's declaration.

    `inputs`: names of the tool's inputs. `required`: names of the mandatory inputs.
    """
    _check_url(entry.url, place.at("url"))
    _check_headers(entry.headers, place.at("headers"))
    _check_errors(entry.errors, inputs, place.at("errors"))
    for name in CALLERS_OWN:
        if name in inputs:
            place.add(f"{{{name}}} is reserved for the caller: rename the input", "url")
    texts = [("url", entry.url), *(("headers", text) for text in entry.headers.values())]
    texts += [("query", text) for text in (entry.query or {}).values()]
    texts += [("body", text) for text in texts_in(entry.body)]
    for key, text in texts:
        _check_inputs(text, (*inputs, *CALLERS_OWN), place.at(key))
        if key in {"url", "body"} and variable_placeholders(text):
            place.add("can't contain environment variables: put them in headers or query", key)
        if key != "headers" and credential_placeholders(text):
            place.add("can't contain the user's credentials: put them in headers", key)
    for name in input_placeholders(entry.url):
        if name in inputs and name not in required:
            place.add(f"uses {{{name}}}, which must be required in input_schema", "url")
    if entry.body is not None and entry.method in {"GET", "DELETE"}:
        place.add(f"is not sent with {entry.method}", "body")


def _check_inputs(text: str, known: Collection[str], place: Place) -> None:
    for name in input_placeholders(text):
        if name not in known:
            place.add(f"uses {{{name}}}, which is not in input_schema{suggest(name, known)}")


def _check_errors(errors: Mapping[int, str], inputs: Sequence[str], place: Place) -> None:
    for status, text in errors.items():
        if not is_surely_not_done(status):
            place.add(f"{status} does not show whether the call was executed, so it can't have a message")
        if not text.strip():
            place.add(f"{status} needs a message for the user")
        _check_inputs(text, inputs, place)


def is_surely_not_done(status: int) -> bool:
    """Return whether a status proves that a request was not executed.

    A redirect can mean success, for example 303 after a creation. 408, 460 and 499 come from servers and
    proxies that stopped waiting.
    """
    return 400 <= status < 500 and status not in _GAVE_UP


def check_mcp(entry: McpEntry, place: Place) -> None:
    """Check an MCP server entry."""
    if not (entry.tool and (entry.url or entry.command)):
        place.add("needs a tool, and a url or command for its server")
    if entry.url and entry.command:
        place.add("has both url and command; use one of them")
    if entry.url is not None:
        _check_url(entry.url, place.at("url"))
        kinds = (input_placeholders, variable_placeholders, credential_placeholders)
        if any(find(entry.url) for find in kinds):
            place.add("can't have placeholders, because all calls share it", "url")
    _check_headers(entry.headers, place.at("headers"))
    if entry.headers and entry.command:
        place.add("require a url; for a command, use environment", "headers")
    if any(input_placeholders(text) or credential_placeholders(text) for text in entry.headers.values()):
        place.add("are the same for all calls: they can contain only environment variables", "headers")
    for name in entry.environment:
        if not _VARIABLE.fullmatch(name):
            place.add(f"{name!r} is not a valid variable name; list names without values", "environment")


def _check_url(url: str, place: Place) -> None:
    parts = _split(url)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        place.add("should begin with http:// or https:// and name a host")
        return
    if input_placeholders(parts.netloc) or variable_placeholders(parts.netloc):
        place.add("can't have placeholders in the host: put inputs in the path")
    if "@" in parts.netloc:
        place.add("can't contain credentials: send them in a header that uses an environment variable")
    if parts.fragment:
        place.add("can't have a fragment (#…)")
    if input_placeholders(parts.query):
        place.add("can't have inputs after the ?: put them in query")


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _check_headers(headers: Mapping[str, str], place: Place) -> None:
    for name in headers:
        if not _HEADER.fullmatch(name):
            place.add(f"{name!r} is not a valid header name")
        elif name.lower() in OWN_HEADERS:
            place.add(f"{name} is set for every call: remove it")
