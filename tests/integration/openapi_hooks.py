"""What the document cannot say about a request: two parts of it that must agree. Read by Schemathesis."""

from __future__ import annotations

from typing import Any

import schemathesis

TENANT = "default"
_TRUE = (True, 1, "true", "True", "1", "on", "yes")


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Keep requests that are right; wrong ones stay as wrong as they are."""
    body = case.body if isinstance(case.body, dict) else {}
    if isinstance(body.get("tenant_id"), str):
        case.body = {**body, "tenant_id": TENANT}
    headers = case.headers or {}
    if isinstance(body.get("idempotency_key"), str) and "Idempotency-Key" in headers:
        del case.headers["Idempotency-Key"]
    _end_soon(case)
    return case


def _end_soon(case: Any) -> None:
    """Nobody answers turns here, and a stream that follows has no end."""
    query = case.query or {}
    if case.operation.definition.raw["operationId"] == "stream_events" and query.get("follow", True) in _TRUE:
        case.query = {**query, "follow": "false"}
    elif "wait" in query:
        case.query = {**query, "wait": "0"}
