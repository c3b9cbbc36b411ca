"""Conversations with the domain `tests/domains/depot` over real stores, carried out by real workers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from orchestrator.bootstrap import Ports
from orchestrator.turns.turn import FINISHED, Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from tests.integration.chaos.fleet import ROOT

DEPOT = ROOT / "tests" / "domains" / "depot"
WITHIN_S = 60


@dataclass
class DepotTalk:
    """A session of the depot domain, as its user has it."""

    ports: Ports
    session_id: SessionId

    async def say(self, text: str) -> JsonObject:
        receipt = await self.ports.stores.inbox.submit(
            Submission(self.session_id, TurnInput(text), DEFAULT_TENANT, create_session=True, domain="depot")
        )
        await self.ports.shared.wakeup.offer(self.session_id)
        ends_at = time.monotonic() + WITHIN_S
        while (
            turn := await self.ports.stores.inbox.turn(DEFAULT_TENANT, receipt.turn_id)
        ).status not in FINISHED:
            assert time.monotonic() < ends_at, turn
            await asyncio.sleep(0.02)
        assert turn.result is not None
        return turn.result
