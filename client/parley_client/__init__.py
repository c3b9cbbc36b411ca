"""Blocking and asynchronous clients of the Parley HTTP API, with event streams and webhook verification."""

from importlib import import_module
from typing import TYPE_CHECKING

from parley_client.errors import ParleyError

if TYPE_CHECKING:
    from parley_client.asynchronous import AsyncClient
    from parley_client.blocking import Client
    from parley_client.events import SessionEvent
    from parley_client.webhooks import verify_webhook

__all__ = ["AsyncClient", "Client", "ParleyError", "SessionEvent", "verify_webhook"]

# Loaded on first use, so that importing only the errors does not import httpx.
_MODULES = {
    "AsyncClient": "asynchronous",
    "Client": "blocking",
    "SessionEvent": "events",
    "verify_webhook": "webhooks",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"parley_client.{_MODULES[name]}"), name)
