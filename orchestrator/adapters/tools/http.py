"""Calls tools that are HTTP endpoints, and puts what goes wrong into the categories of PX-8."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
import orjson

from orchestrator.adapters.tools.addresses import AddressGuard
from orchestrator.adapters.tools.guarded import (
    AddressRefused,
    AnswerEncoded,
    AnswerTooLong,
    GuardedTransport,
    LookUp,
)
from orchestrator.adapters.tools.http_request import build_request
from orchestrator.domain.configuration import Network
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
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

_MESSAGES: Mapping[FailureCategory, str] = {
    FailureCategory.VALIDATION_ERROR: "{} cannot work with these values.",
    FailureCategory.AUTH_ERROR: "{} does not let me in.",
    FailureCategory.NOT_FOUND: "{} found nothing.",
    FailureCategory.RATE_LIMIT: "{} is asked too often at the moment.",
    FailureCategory.TIMEOUT: "{} did not answer in time.",
    FailureCategory.SERVER_ERROR: "{} did not work.",
}


class HttpTools:
    """Implements `ports.tools.ToolTransport` for HTTP; one client, which `close` ends."""

    def __init__(
        self,
        network: Network,
        *,
        environment: Mapping[str, str] | None = None,
        look_up: LookUp | None = None,
    ) -> None:
        self._network = network
        self._environment = os.environ if environment is None else environment
        guard = AddressGuard(network.private_networks)
        transport = GuardedTransport(guard, max_bytes=network.max_output_bytes, look_up=look_up)
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # one user's never reach another
        self._client = httpx2.AsyncClient(transport=transport, trust_env=False, cookies=no_cookies)

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        """See `ToolTransport.send`."""
        built = build_request(tool, arguments, call.idempotency_key, self._environment)
        timeout_s = tool.timeout_ms / 1000
        timeout = httpx2.Timeout(timeout_s, connect=min(timeout_s, self._network.connect_timeout_s))
        request = self._client.build_request(
            built.method, built.url, headers=built.headers, content=built.body, timeout=timeout
        )
        try:
            status, headers, body = await self._exchange(request)
        except (httpx2.HTTPError, AnswerTooLong) as error:
            _log.warning("A tool's endpoint failed.", tool=tool.tool_id, error=error)
            raise _translate(tool, error) from error
        return _read(tool, status, headers, body)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _exchange(self, request: httpx2.Request) -> tuple[int, httpx2.Headers, bytes]:
        """Send, and follow redirects within the same host; other redirects are answers."""
        for _ in range(MOST_REDIRECTS):
            response = await self._client.send(request, stream=True)
            try:
                following = _redirect_within_host(request, response)
                if following is None:
                    return response.status_code, response.headers, await response.aread()
            finally:
                await response.aclose()
            request = following
        raise httpx2.TooManyRedirects("It redirects again and again.", request=request)


def _redirect_within_host(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
    following = response.next_request
    if following is None or following.method != request.method:
        return None
    old, new = request.url, following.url
    same = (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port) and not new.userinfo
    return following if same else None


def _read(tool: ToolSpec, status: int, headers: httpx2.Headers, body: bytes) -> Json:
    if not 200 <= status < 300:
        _log.warning("A tool's endpoint refused.", tool=tool.tool_id, status=status)
        raise _failure(tool, _categorize(status), undecided=_may_have_acted(status), headers=headers)
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        _log.error("A tool's endpoint gave no JSON.", tool=tool.tool_id, error=error)
        raise _unusable(tool) from error
    wrap_as: str | None = tool.options["wrap_as"]
    return value if wrap_as is None or is_object(value) else {wrap_as: value}


def _categorize(status: int) -> FailureCategory:
    """From a status to a category; a redirect that was not followed is the server's mistake."""
    if status in _CATEGORIES:
        return _CATEGORIES[status]
    return FailureCategory.VALIDATION_ERROR if 400 <= status < 500 else FailureCategory.SERVER_ERROR


def _may_have_acted(status: int) -> bool:
    return status >= 500 or status == 408


def _failure(
    tool: ToolSpec, category: FailureCategory, *, undecided: bool, headers: httpx2.Headers | None = None
) -> ToolFailure:
    asked_for_s = None if headers is None else _retry_after_s(headers.get("retry-after"))
    message = _MESSAGES[category].format(tool.name)
    if asked_for_s and category is FailureCategory.RATE_LIMIT:
        message += f" Please try again in {asked_for_s:.0f} seconds."
    return ToolFailure(category, message, undecided=undecided, retry_after_s=asked_for_s)


def _unusable(tool: ToolSpec) -> ToolFailure:
    message = f"{tool.name} gave an answer that I cannot use."
    return ToolFailure(FailureCategory.SERVER_ERROR, message, undecided=True)


def _translate(tool: ToolSpec, error: httpx2.HTTPError | AnswerTooLong) -> ToolFailure:
    """Translate what the library raised; only what happened before anything was sent is decided."""
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
            message = f"{tool.name} cannot be reached."
            return ToolFailure(FailureCategory.SERVER_ERROR, message)
        case httpx2.LocalProtocolError():
            return _failure(tool, FailureCategory.VALIDATION_ERROR, undecided=False)
        case _:
            return _failure(tool, FailureCategory.SERVER_ERROR, undecided=True)


def _retry_after_s(value: str | None) -> float | None:
    """Seconds, or a date, as HTTP has it; None for what is neither."""
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
