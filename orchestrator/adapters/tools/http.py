"""Call tools that are HTTP endpoints, and map their failures to failure categories (PX-8).

The outcome of a call with side effects is done, certainly not done, or unknown (RT-33). Unless the response
shows that the server did not act, the outcome is unknown. Parley then runs the tool's status query, or asks
the user.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
import orjson

from orchestrator.adapters.tools.addresses import AddressGuard
from orchestrator.adapters.tools.credentials import UserCredentials
from orchestrator.adapters.tools.guarded import (
    AddressRefused,
    AnswerEncoded,
    AnswerTooLong,
    GuardedTransport,
    LookUp,
)
from orchestrator.adapters.tools.http_request import build_request, write_value
from orchestrator.domain.compile.endpoints import is_surely_not_done
from orchestrator.domain.configuration import Credential, Network
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.placeholders import fill_placeholders
from orchestrator.domain.services import Accepted, ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.saying import say
from orchestrator.telemetry import get_logger
from orchestrator.types import Json, JsonObject, is_object

MOST_REDIRECTS = 3

_log = get_logger(__name__)

_CATEGORIES: Mapping[int, FailureCategory] = {
    401: FailureCategory.AUTH_ERROR,
    403: FailureCategory.AUTH_ERROR,
    404: FailureCategory.NOT_FOUND,
    407: FailureCategory.AUTH_ERROR,
    408: FailureCategory.TIMEOUT,
    410: FailureCategory.NOT_FOUND,
    429: FailureCategory.RATE_LIMIT,
    504: FailureCategory.TIMEOUT,
}

_REJECTED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
"""Response statuses that cause a user's cached credentials to be discarded."""

_SAYINGS: Mapping[FailureCategory, str] = {
    FailureCategory.VALIDATION_ERROR: "tool_bad_values",
    FailureCategory.AUTH_ERROR: "tool_denied",
    FailureCategory.NOT_FOUND: "tool_found_nothing",
    FailureCategory.TIMEOUT: "tool_timeout",
    FailureCategory.SERVER_ERROR: "tool_failed",
}


class HttpTools:
    def __init__(
        self,
        network: Network,
        *,
        environment: Mapping[str, str] | None = None,
        look_up: LookUp | None = None,
        credentials: Mapping[str, Credential] | None = None,
    ) -> None:
        self._network = network
        self._environment = os.environ if environment is None else environment
        guard = AddressGuard(network.private_networks)
        transport = GuardedTransport(guard, max_bytes=network.max_output_bytes, look_up=look_up)
        no_cookies = CookieJar(
            DefaultCookiePolicy(allowed_domains=())
        )  # one user's cookies must not reach another user
        self._client = httpx2.AsyncClient(transport=transport, trust_env=False, cookies=no_cookies)
        self._credentials = UserCredentials(credentials or {}, self._client, self._environment)

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        credentials = await self._credentials.read(tool, call)
        built = build_request(tool, arguments, call, self._environment, credentials)
        timeout_s = tool.timeout_ms / 1000
        timeout = httpx2.Timeout(timeout_s, connect=min(timeout_s, self._network.connect_timeout_s))
        request = self._client.build_request(
            built.method, built.url, headers=built.headers, content=built.body, timeout=timeout
        )
        redirects: list[str] = []
        try:
            status, headers, body = await self._exchange(request, redirects)
        except (httpx2.HTTPError, AnswerTooLong) as error:
            _log.warning("A tool's endpoint failed.", tool=tool.tool_id, error=error)
            failure = _translate(tool, error)
            failure.undecided |= bool(redirects)  # the first server has received the request
            raise failure from error
        if credentials and status in _REJECTED:
            self._credentials.forget(call)
        return _read(tool, arguments, status, headers, body)

    async def close(self) -> None:
        await self._client.aclose()

    async def _exchange(
        self, request: httpx2.Request, redirects: list[str]
    ) -> tuple[int, httpx2.Headers, bytes]:
        """Send a request. Return the response's status, headers and body.

        Follow redirects that keep the method and the host, and append their URLs to `redirects`. Return other
        redirects as responses.
        """
        for _ in range(MOST_REDIRECTS):
            response = await self._client.send(request, stream=True)
            try:
                following = _redirect_within_host(request, response)
                if following is None:
                    return response.status_code, response.headers, await response.aread()
            finally:
                await response.aclose()
            request = following
            redirects.append(str(request.url))
        raise httpx2.TooManyRedirects("Too many redirects.", request=request)


def _redirect_within_host(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
    following = response.next_request
    if following is None or following.method != request.method:
        return None
    old, new = request.url, following.url
    same = (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port) and not new.userinfo
    return following if same else None


def _read(tool: ToolSpec, arguments: JsonObject, status: int, headers: httpx2.Headers, body: bytes) -> Json:
    is_partial = status == HTTPStatus.MULTI_STATUS and not tool.idempotent
    if not 200 <= status < 300 or is_partial:
        _log.warning("A tool's endpoint rejected a call.", tool=tool.tool_id, status=status)
        raise _rejection(tool, arguments, status, headers)
    if status == HTTPStatus.ACCEPTED and tool.later is not None:
        return Accepted()
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        _log.error("A tool's endpoint did not return JSON.", tool=tool.tool_id, error=error)
        raise _unusable(tool) from error
    wrap_as: str | None = tool.options["wrap_as"]
    return value if wrap_as is None or is_object(value) else {wrap_as: value}


def _categorize(status: int) -> FailureCategory:
    """Return the failure category of an HTTP status. A redirect that was not followed is a server error."""
    if status in _CATEGORIES:
        return _CATEGORIES[status]
    return FailureCategory.VALIDATION_ERROR if 400 <= status < 500 else FailureCategory.SERVER_ERROR


def _rejection(tool: ToolSpec, arguments: JsonObject, status: int, headers: httpx2.Headers) -> ToolFailure:
    """Return the failure for a status, with the manifest's message, if any, unless the outcome is unknown."""
    category, undecided = _categorize(status), not is_surely_not_done(status)
    wait_s = _retry_after_s(headers.get("retry-after"))
    sentence: str | None = tool.options["errors"].get(str(status))
    if sentence is not None and not undecided:
        message = fill_placeholders(sentence, lambda name: write_value(arguments.get(name, "")), lambda _: "")
    elif category is FailureCategory.RATE_LIMIT:
        message = say("tool_rate_limit", tool=tool.name, seconds=round(wait_s or 0))
    else:
        message = say(_SAYINGS[category], tool=tool.name)
    return ToolFailure(category, message, undecided=undecided, retry_after_s=wait_s)


def _failure(tool: ToolSpec, category: FailureCategory, *, undecided: bool) -> ToolFailure:
    return ToolFailure(category, say(_SAYINGS[category], tool=tool.name), undecided=undecided)


def _unusable(tool: ToolSpec) -> ToolFailure:
    message = say("tool_bad_result", tool=tool.name)
    return ToolFailure(FailureCategory.SERVER_ERROR, message, undecided=True)


def _translate(tool: ToolSpec, error: httpx2.HTTPError | AnswerTooLong) -> ToolFailure:
    """Translate a client error to a ToolFailure. The call counts as certainly not done only if nothing was sent."""
    match error:
        case AddressRefused():
            return _failure(tool, FailureCategory.AUTH_ERROR, undecided=False)
        case AnswerTooLong() | AnswerEncoded():
            return _unusable(tool)
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return _failure(tool, FailureCategory.TIMEOUT, undecided=False)
        case httpx2.TimeoutException():
            return _failure(tool, FailureCategory.TIMEOUT, undecided=True)
        case httpx2.ConnectError() | httpx2.UnsupportedProtocol() | httpx2.TooManyRedirects():
            message = say("tool_unreachable", tool=tool.name)
            return ToolFailure(FailureCategory.SERVER_ERROR, message)
        case httpx2.LocalProtocolError():
            return _failure(tool, FailureCategory.VALIDATION_ERROR, undecided=False)
        case _:
            return _failure(tool, FailureCategory.SERVER_ERROR, undecided=True)


def _retry_after_s(value: str | None) -> float | None:
    """Return the wait in a Retry-After header, in seconds. The header contains seconds or an HTTP date.

    Return None for other values.
    """
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
