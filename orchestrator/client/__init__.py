"""What a backend imports: the gateway's calls, blocking (`Client`) and asynchronous (`AsyncClient`)."""

from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.blocking import Client
from orchestrator.client.events import SessionEvent

__all__ = ["AsyncClient", "Client", "SessionEvent"]
