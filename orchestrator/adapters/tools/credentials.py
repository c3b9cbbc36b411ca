import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from urllib.parse import quote

import httpx2
import orjson

from orchestrator.adapters.tools.guarded import AnswerTooLong
from orchestrator.adapters.tools.http_request import read_secret
from orchestrator.domain.configuration import Credential
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.placeholders import credential_placeholders, fill_placeholders
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.saying import say
from orchestrator.telemetry import get_logger
from orchestrator.types import TenantId, UserId, is_object

KEPT_S = 60.0
"""Maximum time to reuse a credential, in seconds. The credential's source can set a shorter time."""
MOST_KEPT = 1000

_Key = tuple[TenantId, UserId, str]
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Kept:
    value: str
    until: float


class UserCredentials:
    """Users' credentials for HTTP tools, fetched from the domain's configured sources and cached briefly.

    Only requests to the tools' endpoints contain the credentials.
    """

    def __init__(
        self,
        sources: Mapping[str, Credential],
        client: httpx2.AsyncClient,
        environment: Mapping[str, str],
    ) -> None:
        self._sources = sources
        self._client = client
        self._environment = environment
        self._kept: dict[_Key, _Kept] = {}

    async def read(self, tool: ToolSpec, call: ToolCall) -> Mapping[str, str]:
        """Return the credential values that a tool's headers use, by credential name.

        Raises ToolFailure, in which case the tool was not called.
        """
        texts: Mapping[str, str] = tool.options["headers"]
        names = {name for text in texts.values() for name in credential_placeholders(text)}
        if not names:
            return {}
        if call.user_id is None:
            message = say("tool_needs_sign_in", tool=tool.name)
            raise ToolFailure(FailureCategory.AUTH_ERROR, message)
        return {name: await self._read(tool, (call.tenant_id, call.user_id, name)) for name in sorted(names)}

    def forget(self, call: ToolCall) -> None:
        """Discard the user's cached credentials, because the endpoint rejected them."""
        self._kept = {
            key: kept for key, kept in self._kept.items() if key[:2] != (call.tenant_id, call.user_id)
        }

    async def _read(self, tool: ToolSpec, key: _Key) -> str:
        kept = self._kept.get(key)
        if kept is not None and kept.until > time.monotonic():
            return kept.value
        fresh = await self._fetch(tool, key)
        self._kept.pop(key, None)
        self._kept[key] = fresh
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return fresh.value

    async def _fetch(self, tool: ToolSpec, key: _Key) -> _Kept:
        tenant_id, user_id, name = key
        source, own = self._sources[name], {"tenant_id": tenant_id, "user_id": user_id}
        read = partial(read_secret, tool=tool, environment=self._environment)
        url = fill_placeholders(source.url, lambda one: quote(own[one], safe=""), read)
        headers = {
            header: fill_placeholders(text, own.__getitem__, read) for header, text in source.headers.items()
        }
        try:
            response = await self._client.get(url, headers={"Accept-Encoding": "identity", **headers})
        except (httpx2.HTTPError, AnswerTooLong) as error:
            _log.warning("A credential source failed.", credential=name, error=error)
            raise _unreachable(tool) from error
        if response.status_code == HTTPStatus.NOT_FOUND:
            message = source.missing or say("tool_needs_permission", tool=tool.name)
            raise ToolFailure(FailureCategory.AUTH_ERROR, message)
        return self._parse(tool, name, source, response)

    def _parse(self, tool: ToolSpec, name: str, source: Credential, response: httpx2.Response) -> _Kept:
        try:
            body: object = orjson.loads(response.content) if response.is_success else None
        except orjson.JSONDecodeError:
            body = None
        value = (body.get(source.field) or None) if is_object(body) else None
        if not (isinstance(value, str) and value.isascii() and value.isprintable()) or not is_object(body):
            _log.error(
                "A credential source returned an unusable response.",
                credential=name,
                status=response.status_code,
            )
            raise _unreachable(tool)
        lasts_s = body.get("expires_in")
        kept_s = min(KEPT_S, lasts_s / 2) if isinstance(lasts_s, int | float) else KEPT_S
        return _Kept(value, time.monotonic() + kept_s)


def _unreachable(tool: ToolSpec) -> ToolFailure:
    return ToolFailure(FailureCategory.SERVER_ERROR, say("tool_unreachable", tool=tool.name))
