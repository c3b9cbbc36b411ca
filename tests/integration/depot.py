"""Conversations with the domain `tests/domains/depot` over real stores, with real workers."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.bootstrap import Ports
from orchestrator.types import JsonObject, SessionId
from tests.conversation import say
from tests.integration.chaos.fleet import ROOT

DEPOT = ROOT / "tests" / "domains" / "depot"
WITHIN_S = 60


@dataclass
class DepotTalk:
    """A user's session in the depot domain."""

    ports: Ports
    session_id: SessionId

    async def say(self, text: str) -> JsonObject:
        return await say(self.ports, self.session_id, text, "depot")
