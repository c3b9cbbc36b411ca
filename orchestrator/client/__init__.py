"""The client of a backend: the gateway's calls, blocking and asynchronous, events, and the check of webhooks."""

from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.blocking import Client
from orchestrator.client.events import SessionEvent
from orchestrator.client.webhooks import verify_webhook

__all__ = ["AsyncClient", "Client", "SessionEvent", "verify_webhook"]
