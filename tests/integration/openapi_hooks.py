"""What the document cannot say about requests, and identifiers of things that are there. Read by Schemathesis."""

from __future__ import annotations

import json
import os
from typing import Any

import schemathesis

from orchestrator.turns.submission import IDENTIFIER_PATTERN

KNOWN_NAME = "PARLEY_OPENAPI_KNOWN"
"""Names the variable with identifiers that exist, by parameter, as JSON."""
_KNOWN: dict[str, str] = json.loads(os.environ.get(KNOWN_NAME, "{}"))
_TRUE = (True, 1, "true", "True", "1", "on", "yes")


@schemathesis.hook
def filter_query(context: Any, query: dict[str, Any]) -> bool:
    """Names that the document does not know are nobody's: proxies and browsers add some."""
    known = {parameter.name for parameter in context.operation.query}
    return query is None or set(query) <= known


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Keep requests that are right as right, and those that are wrong as wrong."""
    body = case.body if isinstance(case.body, dict) else {}
    if isinstance(body.get("tenant_id"), str):
        case.body = body = {**body, "tenant_id": "default"}
    if isinstance(body.get("domain"), str) and 0 < len(body["domain"]) <= 128:
        case.body = body = {**body, "domain": "travel"}
    if case.operation.definition.raw["operationId"] == "start_run":
        _start_what_is_there(body)
    if isinstance(body.get("preferences"), list):
        _keep_small(body["preferences"])
    if isinstance(body.get("idempotency_key"), str) and "Idempotency-Key" in (case.headers or {}):
        del case.headers["Idempotency-Key"]
    domain = (case.query or {}).get("domain")
    if isinstance(domain, str) and 0 < len(domain) <= 128:
        case.query = {**case.query, "domain": "travel"}
    _end_soon(case)
    _use_known(case)
    return case


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """A body of plain text is text whatever it holds: there is none of a wrong type."""
    return not (case.media_type or "").startswith("text/") or isinstance(case.body, str)


def _end_soon(case: Any) -> None:
    """Nobody answers turns here, and a stream that follows has no end."""
    query = case.query or {}
    if case.operation.definition.raw["operationId"] == "stream_events" and query.get("follow", True) in _TRUE:
        case.query = {**query, "follow": "false"}
    elif "wait" in query:
        case.query = {**query, "wait": "0"}


def _start_what_is_there(body: dict[str, Any]) -> None:
    """Which flows there are, and what each may be told, is a matter of the domain."""
    names = {"flow": "summarize_session", "trigger": "summary_due"}
    told = [
        name for name in names if isinstance(body.get(name), str) and IDENTIFIER_PATTERN.fullmatch(body[name])
    ]
    body.update({name: names[name] for name in told})
    if told:
        body.update({name: {} for name in ("options", "parameters") if isinstance(body.get(name), dict)})


def _keep_small(preferences: list[Any]) -> None:
    """How deep and how long a remembered value may be, has no words in the document."""
    for preference in preferences:
        if isinstance(preference, dict):
            if isinstance(preference.get("value"), (dict, list, int)):
                preference["value"] = "aisle"
            if isinstance(preference.get("origin"), dict):
                preference["origin"] = {}


def _use_known(case: Any) -> None:
    """Every other identifier is of something that exists."""
    given = case.path_parameters or {}
    for name, value in given.items():
        if name in _KNOWN and len(str(value)) % 2:
            given[name] = _KNOWN[name]
