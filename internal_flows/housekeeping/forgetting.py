"""`forget` and `erase_forgotten`: what is to be forgotten goes from all that is stored (CO-4, RT-28)."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from internal_flows.housekeeping.retention import PRUNE_WITHIN_S
from internal_flows.stages import InternalFlow, Options, RunContext, before_all_response
from orchestrator.memory.forgetting import Unwanted, collect_unwanted
from orchestrator.ports.memory.scratchpad import Entry
from orchestrator.types import Json, SessionId, TenantId, UserId

AFTER_S = 30.0
"""So long an answer stays whole that names what is forgotten: who asked for it is to read it."""


class Forgotten(BaseModel):
    """A session, or a user with all of its sessions; never both."""

    model_config = ConfigDict(extra="forbid")

    session_id: SessionId | None = None
    user_id: UserId | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Forgotten:
        if (self.session_id is None) == (self.user_id is None):
            raise ValueError("give either session_id or user_id")
        return self


class Forget(InternalFlow):
    """Erases sessions and users at once, whatever their age: of all that they said nothing is kept."""

    name: ClassVar[str] = "forget"
    trigger: ClassVar[str] = "forget"
    tools: ClassVar[tuple[str, ...]] = ("housekeeping", "scratchpad")
    input_type: ClassVar[Any] = Forgotten
    options: ClassVar[Options] = Options(timeout_s=PRUNE_WITHIN_S)

    async def work(self, run: RunContext, item: Forgotten, data: Json) -> int:
        store, tenant_id = run.tools["housekeeping"], run.tenant_id
        names = (
            [item.session_id] if item.user_id is None else await store.sessions_of(tenant_id, item.user_id)
        )
        for session_id in names:
            await run.tools["scratchpad"].forget(tenant_id, session_id)
            await store.delete_session(tenant_id, session_id)
        if item.user_id is not None:
            await store.delete_user(tenant_id, item.user_id)
        return len(names)

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"sessions": sum(count for count in outputs if isinstance(count, int))}


class Erasing(BaseModel):
    """Whose memory holds something forgotten, and one of their sessions; without one, what is beside sessions."""

    tenant_id: TenantId
    owner: UserId
    session_id: SessionId | None = None


class EraseForgotten(InternalFlow):
    """Takes what users had forgotten out of their sessions, notes and documents.

    A session that somebody is at work on is left to the next run, and what was forgotten with it. The run itself
    names nothing of it. Configuration: `after_s` (30).
    """

    name: ClassVar[str] = "erase_forgotten"
    trigger: ClassVar[str] = "erase_forgotten"
    tools: ClassVar[tuple[str, ...]] = ("forgetting", "scratchpad")
    input_type: ClassVar[Any] = Erasing
    options: ClassVar[Options] = Options(timeout_s=PRUNE_WITHIN_S)

    async def before_all(self, run: RunContext) -> Any:
        store, until = run.tools["forgetting"], time.time() - run.config.get("after_s", AFTER_S)
        inputs = [
            Erasing(tenant_id=tenant_id, owner=owner, session_id=session_id).model_dump()
            for tenant_id, owner in await store.owners(until)
            for session_id in (None, *await store.sessions_of(tenant_id, owner))
        ]
        return before_all_response(inputs=inputs, data={"until": until})

    async def work(self, run: RunContext, item: Erasing, data: Json) -> Json:
        """Erase at one place; whose place it is, and whether that could be done."""
        store = run.tools["forgetting"]
        forgotten = await store.forgotten(item.tenant_id, item.owner, run.data["until"])
        unwanted = collect_unwanted(forgotten)
        if item.session_id is None:
            theirs = await store.sessions_of(item.tenant_id, item.owner)
            await store.drop_documents(item.tenant_id, item.owner, theirs, unwanted)
            done = True
        else:
            await self._take_out_of_notes(run, item.tenant_id, item.session_id, unwanted)
            done = await store.take_out(item.tenant_id, item.session_id, unwanted)
        return [item.tenant_id, item.owner, done]

    async def _take_out_of_notes(
        self, run: RunContext, tenant_id: TenantId, session_id: SessionId, unwanted: Unwanted
    ) -> None:
        pad = run.tools["scratchpad"]
        if unwanted.everything:
            await pad.forget(tenant_id, session_id)
            return
        told = [
            entry.entry_id
            for entry in await pad.read(tenant_id, session_id, touch=False)
            if _tells(entry, unwanted)
        ]
        await pad.remove(tenant_id, session_id, tuple(told))

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        """Forget for good what stands nowhere else any more."""
        done: dict[tuple[TenantId, UserId], bool] = {}
        for tenant_id, owner, gone in outputs:
            done[tenant_id, owner] = done.get((tenant_id, owner), True) and gone
        for tenant_id, owner in (name for name, gone in done.items() if gone):
            await run.tools["forgetting"].finish(tenant_id, owner, run.data["until"])
        return {"erased": sum(done.values()), "left": len(done) - sum(done.values())}


def _tells(entry: Entry, unwanted: Unwanted) -> bool:
    body = {"text": entry.text, "data": entry.data}
    return unwanted.take_out(body) != body
