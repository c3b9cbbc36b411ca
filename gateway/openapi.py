"""The OpenAPI document, which describes every error as a problem document."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from gateway.dependencies import Dependencies
from gateway.middleware.body_limit import LARGER
from gateway.problems import MEDIA_TYPE, Problem
from orchestrator.turns.submission import MAX_INPUT_BYTES, NO_NUL
from orchestrator.types import JsonObject

DESCRIPTION = """
A **session** is one conversation; each input is a **turn**. Parley stores accepted turns and runs a session's turns
in order. Each session has an **event log** that clients can follow from any event number.

Every error is `application/problem+json` with a stable `code`.
"""

# JSON Schema of any JSON value without NUL characters. Parley rejects requests with NUL characters.
ANY_JSON: JsonObject = {
    "title": "JsonValue",
    "description": "Any JSON without NUL characters.",
    "anyOf": [
        {"type": ["null", "boolean", "number"]},
        {"type": "string", "pattern": NO_NUL},
        {"type": "array", "items": {"$ref": "#/components/schemas/JsonValue"}},
        {
            "type": "object",
            "propertyNames": {"pattern": NO_NUL},
            "additionalProperties": {"$ref": "#/components/schemas/JsonValue"},
        },
    ],
}

_EVERYWHERE = {503: "A store is unavailable; try again later."}
_GUARDED = {
    401: "Missing or invalid credentials.",
    403: "Your key or token does not allow this call.",
    429: "Too many requests; `Retry-After` says when to try again.",
}
_WITH_INPUT = {422: "The input is malformed; `field` says where."}
_WITH_NAME = {404: "The object does not exist, or belongs to another tenant."}
# Additional status codes by operation.
_FURTHER: dict[str, dict[int, str]] = {
    "create_session": {409: "The ID belongs to a session in another tenant or domain."},
    "read_plan": {404: "The session does not exist, or has no plan."},
    "submit_turn": {
        409: "The session is closed, or busy and `if_busy` is `reject`; the sequence number is in use; or the header "
        "and the body have different idempotency keys.",
        429: "The inbox is full, or the rate limit is reached; `Retry-After` says when to try again.",
    },
    "retry_turn": {409: "The turn is not quarantined, or its session has changed in the meantime."},
    "roll_back": {
        404: "The session does not exist, or has no state at this epoch.",
        409: "The session has unfinished turns.",
    },
    "send_event": {
        409: "No flow in the domain lists the event, the session is closed, or the header and the body have "
        "different idempotency keys.",
        429: "The session's inbox is full, or the rate limit is reached.",
    },
    "move_event": {
        404: "The session or event does not exist.",
        409: "The event was already delivered or canceled.",
    },
    "cancel_event": {404: "The session or event does not exist."},
    "answer_call": {
        404: "The call does not exist, or the signature is wrong.",
        409: "The call already has a different answer, or the session is closed.",
        429: "The session's inbox is full, or there were too many wrong signatures.",
    },
    "list_repairs": {409: "The stored state is unreadable."},
    "preview_repairs": {409: "The stored state is unreadable."},
    "make_repairs": {
        409: "The session has changed or is closed, or the repairs would make its state invalid.",
        429: "The session's inbox is full, or the rate limit is reached.",
    },
    "create_webhook": {404: "The session does not exist."},
    "start_run": {404: "The session does not exist.", 409: "Another run of this flow is active."},
    "redo_run": {409: "Another run of this flow is active."},
    "decide_approval": {
        409: "The approval has a different decision, has expired or is void, or the session is closed.",
        429: "The session's inbox is full, or the rate limit is reached.",
    },
}


def operation_id(route: APIRoute) -> str:
    """Return the route function's name, which generated clients use as the method name."""
    return route.name


def describe(app: FastAPI) -> JsonObject:
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=DESCRIPTION,
            routes=app.routes,
            tags=[],
        )
        schemas = document["components"]["schemas"]
        schemas["Problem"] = Problem.model_json_schema()
        schemas["JsonValue"] = ANY_JSON
        for replaced in ("HTTPValidationError", "ValidationError"):
            schemas.pop(replaced, None)
        for path, methods in document["paths"].items():
            for operation in methods.values():
                _add_problems(path, operation)
                for parameter in operation.get("parameters", ()):
                    _remove_null(parameter)
        _name_what_is_there(document, getattr(app.state, "dependencies", None))
        app.openapi_schema = document
    return app.openapi_schema


def _name_what_is_there(document: JsonObject, dependencies: Dependencies | None) -> None:
    """Add the names of this gateway's domains and background flows to the document, once they are known."""
    if dependencies is None:
        return
    domains = dependencies.sessions.domains.names()
    catalogue = dependencies.runs.catalogue()
    schemas = document["components"]["schemas"]
    schemas["NewSession"]["properties"]["domain"]["anyOf"][0]["enum"] = domains
    run = schemas["NewRunBody"]["properties"]
    run["flow"]["anyOf"][0]["enum"] = sorted(catalogue.flows)
    run["trigger"]["anyOf"][0]["enum"] = sorted(catalogue.graphs)
    upload = document["paths"]["/v1/documents"]["post"]
    (in_address,) = [one for one in upload["parameters"] if one["name"] == "domain"]
    in_body = upload["requestBody"]["content"]["application/json"]["schema"]["properties"]["domain"]
    for schema in (in_address["schema"], in_body):
        schema["enum"] = ["", *domains]


def _add_problems(path: str, operation: dict[str, Any]) -> None:
    name = operation["operationId"]
    if path == "/health/live":
        return
    described = {**_EVERYWHERE}
    if path.startswith("/v1"):
        described |= _GUARDED
    if "{" in path:
        described |= _WITH_NAME
    if operation.get("parameters") or operation.get("requestBody"):
        described |= _WITH_INPUT
    if operation.get("requestBody"):
        described[413] = f"The body is larger than {LARGER.get(path, MAX_INPUT_BYTES) // 1024} KiB."
    described |= _FURTHER.get(name, {})
    for status, meaning in sorted(described.items()):
        operation["responses"][str(status)] = _problem(status, meaning)


def _remove_null(parameter: JsonObject) -> None:
    """Remove null from an optional parameter's schema, because URLs and headers can't contain null."""
    kinds = parameter["schema"].get("anyOf")
    if kinds is not None:
        (only,) = [kind for kind in kinds if kind != {"type": "null"}]
        del parameter["schema"]["anyOf"]
        parameter["schema"] |= only


def _problem(status: int, meaning: str) -> JsonObject:
    response: JsonObject = {
        "description": meaning,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status == 429:
        response["headers"] = {
            "Retry-After": {
                "description": "Seconds to wait before another request.",
                "schema": {"type": "integer"},
            }
        }
    return response
