"""API requests and the errors in their responses. This module does no I/O."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from parley_client import errors
from parley_client.types import JsonObject

DEFAULT_TIMEOUT_S = 30.0
PAUSES_S = (0.1, 0.3)  # pauses before the second and third attempts, in seconds


@dataclass(frozen=True, slots=True)
class Call:
    """An API request. Members of `body` and `query` that are None are not sent.

    `keyed`: True if a request other than GET is idempotent and can be retried.
    """

    method: str
    path: str
    body: Mapping[str, object] | None = None
    query: Mapping[str, object] = field(default_factory=dict[str, object])
    keyed: bool = False

    @property
    def pauses_s(self) -> tuple[float, ...]:
        return PAUSES_S if self.keyed or self.method == "GET" else ()

    def request(self, timeout_s: float, silent_for_s: float | None = None) -> JsonObject:
        """Return the arguments for httpx's ``request``.

        `timeout_s`: timeout in seconds. The query's `wait` extends the read timeout. `silent_for_s`: the read
        timeout of a stream, in seconds, or None for other requests.
        """
        wait_s: Any = self.query.get("wait") or 0.0
        return {
            "method": self.method,
            "url": self.path,
            "json": None if self.body is None else _given(self.body),
            "params": {name: str(value) for name, value in _given(self.query).items()},
            "timeout": httpx.Timeout(timeout_s, read=silent_for_s or timeout_s + wait_s),
        }


def path_of(*parts: str) -> str:
    """Return an API path, with each segment percent-encoded."""
    return "/".join(("/v1", *(quote(part, safe="") for part in parts)))


def _given(members: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


def headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


@contextmanager
def translated_errors(base_url: str) -> Generator[None]:
    """Translate httpx's errors to Unavailable."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise errors.Unavailable(f"The gateway at {base_url} did not respond in time; try again.") from error
    except httpx.HTTPError as error:
        raise errors.Unavailable(
            f"No gateway is responding at {base_url}. Start one with `parley up`."
        ) from error


def answer(response: httpx.Response) -> Any:
    """Return a successful response's JSON, or an empty object if there is no content.

    Raise the error that a problem document describes, or Unavailable for other unsuccessful responses.
    """
    if response.status_code == HTTPStatus.NO_CONTENT:
        return {}
    if response.is_success:
        return response.json()
    if not response.headers.get("Content-Type", "").startswith("application/problem+json"):
        raise errors.Unavailable(
            f"The gateway returned status {response.status_code}, without an error description."
        )
    raise _error_of(response.json(), response)


_BY_CODE: dict[str, type[errors.ParleyError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.ParleyError)
}


def _error_of(body: JsonObject, response: httpx.Response) -> errors.ParleyError:
    detail = str(body.get("detail", "The gateway did not return an error description."))
    kind = _BY_CODE.get(str(body.get("code")), errors.ParleyError)
    if issubclass(kind, errors.InvalidInput):
        return kind(detail, field=str(body.get("field", "body")))
    if issubclass(kind, errors.InboxFull | errors.TooManyRequests):
        return kind(detail, retry_after_s=int(response.headers.get("Retry-After", "1")))
    if kind is errors.NotFound:
        error = errors.NotFound("thing", "")
        error.args = (detail,)
        return error
    if kind is errors.Unauthenticated:
        detail = f"{detail} For commands, set PARLEY_API_KEY."
    return kind(detail)
