"""A gateway with authentication, over the in-memory stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx

from gateway.app import Exposure
from gateway.auth.authentication import Access, Rates, TokenReader
from gateway.dependencies import Dependencies
from orchestrator.turns.access import Scope
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import SessionId, TenantId, TurnId, UserId
from parley.testing.store import ManualClock, MemoryStore
from tests.contract.in_memory.access import MemoryKeys, MemoryRequestLimits, MemoryTickets
from tests.unit.gateway.memory_dependencies import make_dependencies, serve


class Noted:
    """Feedback that is not stored."""

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        return FeedbackRecord("feedback_1", SessionId("of the turn"), turn_id, feedback, datetime.now(UTC))


class GuardedHouse:
    """A gateway with authentication. `key` creates a key, and `ask` sends a request with it."""

    def __init__(self, rates: Rates, tokens: TokenReader | None) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.keys = MemoryKeys(self.clock)
        self.access = Access(
            required=True,
            keys=self.keys,
            tokens=tokens,
            tickets=MemoryTickets(self.clock),
            limits=MemoryRequestLimits(self.clock),
            rates=rates,
            key_kept_s=0.0,
        )
        self.http: httpx.AsyncClient
        self.app: Any = None

    def dependencies(self) -> Dependencies:
        return make_dependencies(
            self.store, access=self.access, feedback=Noted(), flower_url="http://127.0.0.1:5555"
        )

    async def key(self, tenant: str = "acme", *, user: str | None = None, operator: bool = False) -> str:
        scopes = frozenset({Scope.OPERATOR if operator else Scope.USER})
        owner = None if user is None else UserId(user)
        _, text = await self.keys.create(TenantId(tenant), f"{tenant}'s", scopes, user_id=owner)
        return text

    async def ask(self, key: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        return await self.http.request(method, path, headers=headers, **more)

    async def session(self, key: str, **body: object) -> str:
        answer = await self.ask(key, "POST", "/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["session_id"]

    async def turn(self, key: str, session_id: str) -> str:
        answer = await self.ask(key, "POST", f"/v1/sessions/{session_id}/turns", json={"text": "hello"})
        assert answer.status_code == 202, answer.text
        return answer.json()["turn_id"]


@asynccontextmanager
async def guarded_house(
    *, rates: Rates | None = None, tokens: TokenReader | None = None, exposure: Exposure | None = None
) -> AsyncIterator[GuardedHouse]:
    house = GuardedHouse(rates or Rates(), tokens)

    async with serve(house.dependencies(), exposure) as (house.app, house.http):
        yield house
