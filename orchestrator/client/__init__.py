"""What a backend imports: the gateway's calls, blocking (`Client`) and asynchronous (`AsyncClient`)."""

from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
