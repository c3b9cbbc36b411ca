"""Errors over HTTP: problem details (RFC 9457) with the stable `code` of the error family (RT-23)."""

from __future__ import annotations

from http import HTTPStatus

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from orchestrator.errors import (
    ConfigurationError,
    Forbidden,
    InboxFull,
    InputTooLarge,
    InvalidInput,
    NotFound,
    ParleyError,
    Refused,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import PROBLEMS
from orchestrator.turns.submission import mistakes_in
from orchestrator.types import JsonObject

log = get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
CHALLENGE = 'Bearer realm="parley"'

# The first class that fits decides; narrower classes stand before wider ones.
STATUS_OF: tuple[tuple[type[ParleyError], HTTPStatus], ...] = (
    (InputTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ConfigurationError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (TooManyRequests, HTTPStatus.TOO_MANY_REQUESTS),
    (InboxFull, HTTPStatus.TOO_MANY_REQUESTS),
    (Refused, HTTPStatus.CONFLICT),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (ParleyError, HTTPStatus.INTERNAL_SERVER_ERROR),
)


def problem(
    status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **members: object
) -> Response:
    """One problem document; `members` are added to it."""
    PROBLEMS.labels(code).inc()
    body: JsonObject = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        **members,
    }
    return Response(orjson.dumps(body), status, headers, MEDIA_TYPE)


def problem_of(error: ParleyError) -> Response:
    status = next(status for kind, status in STATUS_OF if isinstance(error, kind))
    match error:
        case InboxFull() | TooManyRequests():
            return problem(status, error.code, str(error), headers={"Retry-After": str(error.retry_after_s)})
        case Unauthenticated():
            return problem(status, error.code, str(error), headers={"WWW-Authenticate": CHALLENGE})
        case InvalidInput():
            return problem(status, error.code, str(error), field=error.field)
        case _:
            return problem(status, error.code, str(error))


def _on_parley_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, ParleyError):
        raise error
    return problem_of(error)


def _on_invalid_request(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    mistakes = mistakes_in(error.errors())
    first = mistakes[0]
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        InvalidInput.code,
        str(first),
        field=first.field,
        errors=[mistake._asdict() for mistake in mistakes],
    )


def _on_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.BAD_REQUEST:  # the framework's only one: a body it cannot decode
        return problem_of(InvalidInput("The body is not JSON in UTF-8.", field="body"))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error.headers = {"Allow": ", ".join(sorted(_methods(request)))}
    code = HTTPStatus(error.status_code).name.lower()
    return problem(error.status_code, code, str(error.detail), headers=dict(error.headers or {}))


def _methods(request: Request) -> set[str]:
    """The methods that an address answers to; each of its routes knows its own only."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found


def _on_surprise(request: Request, error: Exception) -> Response:
    log.error("A request failed unexpectedly.", path=request.url.path, exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        ParleyError.code,
        "Something went wrong on our side. The request was logged; try again later.",
    )


def install(app: FastAPI) -> None:
    """Make every error of the application a problem document."""
    app.add_exception_handler(ParleyError, _on_parley_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_surprise)
