"""HTTP errors as problem details (RFC 9457), each with the error's stable `code` (RT-23)."""

from http import HTTPStatus

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from gateway.schemas import JsonMap, ResponseModel
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


class Problem(ResponseModel):
    """An error, as problem details (RFC 9457). `code` is stable. `detail` is human-readable."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(examples=["not_found"])
    detail: str = Field(examples=["Session 'nowhere' not found."])
    field: str | None = Field(
        default=None, description="The invalid part of the request, if one caused the error."
    )
    errors: list[JsonMap] | None = Field(default=None, description="All errors in a malformed request.")


_log = get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
LONGEST_LOGGED = 200  # maximum number of logged characters of a path
CHALLENGE = 'Bearer realm="parley"'

# The first matching class decides, so subclasses come first.
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
    """Return a problem document, and count the problem. `members`: additional members of the document."""
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


def problem_of_request(error: RequestValidationError) -> Response:
    mistakes = mistakes_in(error.errors())
    first = mistakes[0]
    listed = [mistake._asdict() for mistake in mistakes]
    return problem(422, InvalidInput.code, str(first), field=first.field, errors=listed)


def problem_of_framework(request: Request, error: HTTPException) -> Response:
    """Return a problem document for a framework error: unknown URL, wrong method or undecodable body."""
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return problem_of(InvalidInput("The body is not JSON in UTF-8.", field="body"))
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {"Allow": ", ".join(sorted(_methods(request)))}
    code = HTTPStatus(error.status_code).name.lower()
    return problem(error.status_code, code, str(error.detail), headers=headers)


def _methods(request: Request) -> set[str]:
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found


def problem_of_fault(path: str, error: Exception) -> Response:
    """Log an unexpected error, and return a problem document without details."""
    _log.error("A request failed unexpectedly.", path=path[:LONGEST_LOGGED], exc_info=error)
    detail = "An unexpected error occurred. It was logged; try again later."
    return problem(500, ParleyError.code, detail)


def install(app: FastAPI) -> None:
    app.exception_handler(ParleyError)(lambda _, error: problem_of(error))
    app.exception_handler(RequestValidationError)(lambda _, error: problem_of_request(error))
    app.exception_handler(HTTPException)(problem_of_framework)
