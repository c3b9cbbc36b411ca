"""`forget` and `erase_forgotten`: what is to be forgotten goes from all that is stored (CO-4, RT-28)."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from internal_flows.housekeeping.maintenance.retention import PRUNE_WITHIN_S, delete_session
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
    recorded: ClassVar[bool | None] = False

    async def work(self, run: RunContext, item: Forgotten, data: Json) -> int:
        store, tenant_id = run.tools["housekeeping"], run.tenant_id
        if item.session_id is None:
            names = await store.sessions_of(tenant_id, item.user_id)
        else:  # what was said in it is in its branches too; it goes last, and leads to them until then
            names = [*await store.branches_of(tenant_id, item.session_id), item.session_id]
        for session_id in names:
            await delete_session(run, tenant_id, session_id)
        if item.user_id is not None:
            await store.delete_user(tenant_id, item.user_id)
        return len(names)

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"sessions": sum(count for count in outputs if isinstance(count, int))}


class Erasing(BaseModel):
    """Who had something forgotten."""

    tenant_id: TenantId
    owner: UserId


class EraseForgotten(InternalFlow):
    """Takes what users had forgotten out of their sessions, notes and documents.

    A session that somebody is at work on is left to the next run, and what was forgotten with it. The run itself
    names nothing of it. Configuration: `after_s` (30).
    """

    name: ClassVar[str] = "erase_forgotten"
    trigger: ClassVar[str] = "erase_forgotten"
    tools: ClassVar[tuple[str, ...]] = ("forgetting", "housekeeping", "scratchpad")
    input_type: ClassVar[Any] = Erasing
    options: ClassVar[Options] = Options(timeout_s=PRUNE_WITHIN_S)
    recorded: ClassVar[bool | None] = False

    async def before_all(self, run: RunContext) -> Any:
        until = run.now - run.config.get("after_s", AFTER_S)
        inputs = [
            Erasing(tenant_id=tenant_id, owner=owner).model_dump()
            for tenant_id, owner in await run.tools["forgetting"].owners(until)
        ]
        return before_all_response(inputs=inputs, data={"until": until})

    async def work(self, run: RunContext, item: Erasing, data: Json) -> bool:
        """Erase what one user had forgotten; False when some of it still stands somewhere."""
        store, tenant_id, until = run.tools["forgetting"], item.tenant_id, run.data["until"]
        forgotten = await store.forgotten(tenant_id, item.owner, until)
        unwanted = collect_unwanted(forgotten)
        theirs = await run.tools["housekeeping"].sessions_of(tenant_id, item.owner)
        await store.drop_documents(tenant_id, item.owner, theirs, unwanted)
        done = [await self._erase(run, tenant_id, session_id, unwanted) for session_id in theirs]
        if all(done):
            await store.finish(tenant_id, item.owner, forgotten, until)
        return all(done)

    async def _erase(
        self, run: RunContext, tenant_id: TenantId, session_id: SessionId, unwanted: Unwanted
    ) -> bool:
        """Take it out of a session and its notes; False, and nothing done, while somebody is at work there."""
        if not await run.tools["forgetting"].take_out(tenant_id, session_id, unwanted):
            return False
        pad, until = run.tools["scratchpad"], unwanted.everything_until
        told = [
            entry.entry_id
            for entry in await pad.read(tenant_id, session_id, touch=False)
            if (until is not None and entry.at <= until) or _tells(entry, unwanted)
        ]
        await pad.remove(tenant_id, session_id, tuple(told))
        return True

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"erased": sum(map(bool, outputs)), "left": sum(not done for done in outputs)}


def _tells(entry: Entry, unwanted: Unwanted) -> bool:
    body = {"text": entry.text, "data": entry.data}
    return unwanted.take_out(body) != body
