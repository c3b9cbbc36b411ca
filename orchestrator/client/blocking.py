"""The blocking client."""

from __future__ import annotations

from typing import Any, Self

import httpx

from orchestrator.client import calls
from orchestrator.client.calls import DEFAULT_TIMEOUT_S, Call
from orchestrator.client.methods import Methods
from orchestrator.types import JsonObject


class Client(Methods[JsonObject, list[JsonObject]]):
    """The gateway's calls, each waiting for its answer.

    Args:
        base_url: the gateway's address, for example ``http://127.0.0.1:8600``.
        timeout_s: seconds for one request, without the time it was asked to wait.
        api_key: sent as a bearer token when given.
    """

    def __init__(
        self, base_url: str, timeout_s: float = DEFAULT_TIMEOUT_S, api_key: str | None = None
    ) -> None:
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._http = httpx.Client(base_url=base_url, headers=calls.headers(api_key))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _send(self, call: Call) -> Any:
        try:
            response = self._http.request(**calls.request(call, self._timeout_s))
        except httpx.HTTPError as error:
            raise calls.unreachable(self._base_url, error) from error
        return calls.answer(response)
