"""Approvals and effects over HTTP: an operator's decision resumes the session, once (PX-17, RT-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

import httpx
import pytest

from gateway.auth.authentication import Access
from gateway.dependencies import Dependencies
from orchestrator.turns.access import Scope
from orchestrator.turns.approval import from_unix
from orchestrator.types import DEFAULT_TENANT, ToolId
from parley.simulator import Conversation, Simulator
from parley.testing.live import MemoryWakeup
from tests.contract.in_memory.access import MemoryKeys
from tests.trained import trained
from tests.unit.gateway.memory_dependencies import make_dependencies, serve
from tests.unit.running import runner_of


class Desk:
    """A conversation, and the gateway over the same store."""

    def __init__(self, approval: Literal["user", "operator"] | None = None) -> None:
        loaded, system1 = trained("desk")
        if approval is not None:
            wipe = replace(loaded.domain.tools[ToolId("disk_wipe")], approval=approval)
            tools = {**loaded.domain.tools, wipe.tool_id: wipe}
            loaded = replace(loaded, domain=replace(loaded.domain, tools=tools))
        self.simulator = Simulator.of(loaded, system1=system1)
        self.talk: Conversation = self.simulator.converse()
        store = self.store = self.simulator.store
        store.clock = lambda: from_unix(self.simulator.now)
        self.wakeup = MemoryWakeup()
        self.http: httpx.AsyncClient
        self.access = Access()

    def dependencies(self) -> Dependencies:
        return make_dependencies(self.store, wakeup=self.wakeup, access=self.access)

    async def get(self, path: str, **query: str) -> Any:
        answer = await self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def decide(self, approval_id: str, decision: str, **body: str) -> httpx.Response:
        return await self.http.post(f"/v1/approvals/{approval_id}", json={"decision": decision, **body})

    async def work(self) -> None:
        """Run the worker that a wake-up would start."""
        await runner_of(self.simulator, wakeup=self.wakeup).run(self.talk.session_id)

    async def history(self) -> list[Any]:
        return await self.get(f"/v1/sessions/{self.talk.session_id}/history")


@asynccontextmanager
async def desk(approval: Literal["user", "operator"] | None = None) -> AsyncIterator[Desk]:
    place = Desk(approval)
    async with serve(place.dependencies()) as (_, place.http):
        yield place


@pytest.fixture
async def place() -> AsyncIterator[Desk]:
    async with desk() as place:
        yield place


async def test_a_grant_resumes_the_session_and_is_kept(place: Desk) -> None:
    await place.talk.say("wipe disk of printer one")
    (asked,) = await place.get("/v1/approvals", status="pending")
    assert (asked["tool_id"], asked["arguments"]) == ("disk_wipe", {"printer": "P1"})
    assert asked["session_id"] == place.talk.session_id

    answer = await place.decide(asked["approval_id"], "grant", decided_by="boss", reason="it is old")
    await place.work()

    assert answer.status_code == 200
    assert answer.json()["status"] == "granted"
    (used,) = await place.get("/v1/approvals")
    assert (used["status"], used["decided_by"], used["reason"]) == ("used", "boss", "it is old")
    (effect,) = await place.get(f"/v1/sessions/{place.talk.session_id}/effects")
    assert (effect["tool_id"], effect["status"]) == ("disk_wipe", "done")
    assert effect["result"] == {"wiped": "P1"}
    roles = [line["role"] for line in await place.history()]
    assert roles == ["user", "agent", "system", "agent"]


async def test_a_denial_gives_the_task_up_and_says_why(place: Desk) -> None:
    await place.talk.say("wipe disk of printer one")
    (asked,) = await place.get("/v1/approvals")

    await place.decide(asked["approval_id"], "deny", reason="not on a Friday")
    await place.work()

    assert "wasn't approved (not on a Friday)" in (await place.history())[-1]["content"]
    assert await place.get(f"/v1/sessions/{place.talk.session_id}/effects") == []


async def test_the_same_decision_twice_has_one_effect_and_the_other_is_refused(place: Desk) -> None:
    await place.talk.say("wipe disk of printer one")
    (asked,) = await place.get("/v1/approvals")

    first = await place.decide(asked["approval_id"], "grant")
    again = await place.decide(asked["approval_id"], "grant")
    other = await place.decide(asked["approval_id"], "deny")
    await place.work()

    assert first.json()["resumed_by"] == again.json()["resumed_by"]
    assert other.status_code == 409
    assert "already granted by operator" in other.json()["detail"]
    assert len(await place.get(f"/v1/sessions/{place.talk.session_id}/effects")) == 1


async def test_only_an_operator_grants_what_is_marked_so() -> None:
    """Neither the user's words nor a click grants it, and the question stays open (PX-17, RT-22)."""
    async with desk("operator") as place:
        said = await place.talk.say("wipe disk of printer one")
        assert "An operator must approve it" in said["reply"]
        assert [action["label"] for action in said["actions"]] == ["Don't approve"]
        (asked,) = await place.get("/v1/approvals", status="pending")
        assert asked["operator_only"] is True

        said = await place.talk.say("yes")
        assert "An operator must approve it" in said["reply"]
        payload = {"approval_id": asked["approval_id"], "flow_id": asked["flow_id"]}
        await place.talk.act("approve", payload)
        (asked,) = await place.get("/v1/approvals")
        assert (asked["status"], asked["decided_by"]) == ("pending", None)
        assert await place.get(f"/v1/sessions/{place.talk.session_id}/effects") == []

        await place.decide(asked["approval_id"], "grant")
        await place.work()
        (effect,) = await place.get(f"/v1/sessions/{place.talk.session_id}/effects")
        assert (effect["tool_id"], effect["status"]) == ("disk_wipe", "done")


async def test_the_user_may_still_withdraw() -> None:
    async with desk("operator") as place:
        await place.talk.say("wipe disk of printer one")
        said = await place.talk.say("no")
        assert said["flows"] == []
        (asked,) = await place.get("/v1/approvals")
        assert asked["status"] == "denied"


async def test_a_key_of_a_user_does_not_grant_what_operators_decide() -> None:
    async with desk("operator") as place:
        await place.talk.say("wipe disk of printer one")
        (asked,) = await place.get("/v1/approvals")
        keys = MemoryKeys(place.store.clock)
        place.access.required, place.access.keys = True, keys
        texts = {}
        for scope in Scope:
            made = await keys.create(DEFAULT_TENANT, scope.value, frozenset({scope}))
            texts[scope] = {"Authorization": f"Bearer {made[1]}"}

        path, body = f"/v1/approvals/{asked['approval_id']}", {"decision": "grant"}
        refused = await place.http.post(path, json=body, headers=texts[Scope.USER])
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        granted = await place.http.post(path, json=body, headers=texts[Scope.OPERATOR])
        assert (granted.status_code, granted.json()["decided_by"]) == (200, "operator")


async def test_what_is_not_there_or_makes_no_sense_is_refused(place: Desk) -> None:
    assert (await place.decide("approval_none", "grant")).status_code == 404
    assert (await place.decide("approval_none", "maybe")).status_code == 422
    assert (await place.http.get("/v1/sessions/none/effects")).status_code == 404
    assert (await place.http.get("/v1/approvals", params={"status": "odd"})).status_code == 422
