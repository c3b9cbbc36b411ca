"""`forget` and `erase_forgotten`: erase forgotten content from all stores (CO-4, RT-28)."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from internal_flows.maintenance.retention import PRUNE_WITHIN_S, delete_session
from internal_flows.stages import InternalFlow, Options, RunContext, before_all_response
from orchestrator.memory.forgetting import Unwanted, collect_unwanted
from orchestrator.ports.memory.scratchpad import Entry
from orchestrator.types import Json, SessionId, TenantId, UserId

AFTER_S = 30.0
"""Default delay before erasure, in seconds. The user can still read the answer that names the content."""


class Forgotten(BaseModel):
    """A session to erase, or a user to erase with all sessions."""

    model_config = ConfigDict(extra="forbid")

    session_id: SessionId | None = None
    user_id: UserId | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Forgotten:
        if (self.session_id is None) == (self.user_id is None):
            raise ValueError("requires either session_id or user_id")
        return self


class Forget(InternalFlow):
    """A flow that immediately erases sessions, or users with all their sessions."""

    name: ClassVar[str] = "forget"
    trigger: ClassVar[str] = "forget"
    tools: ClassVar[tuple[str, ...]] = ("maintenance", "scratchpad")
    input_type: ClassVar[Any] = Forgotten
    options: ClassVar[Options] = Options(timeout_s=PRUNE_WITHIN_S)

    async def work(self, run: RunContext, item: Forgotten, data: Json) -> int:
        store, tenant_id = run.tools["maintenance"], run.tenant_id
        if item.session_id is None:
            names = await store.sessions_of(tenant_id, item.user_id)
        else:  # Delete forks first: they contain the session's content, and are found through the session.
            names = [*await store.branches_of(tenant_id, item.session_id), item.session_id]
        for session_id in names:
            await delete_session(run, tenant_id, session_id)
        if item.user_id is not None:
            await store.delete_user(tenant_id, item.user_id)
        return len(names)

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"sessions": sum(count for count in outputs if isinstance(count, int))}


class Erasing(BaseModel):
    tenant_id: TenantId
    owner: UserId


class EraseForgotten(InternalFlow):
    """A flow that erases forgotten content from users' sessions, scratchpad entries and documents.

    The next run retries busy sessions. The run's records contain none of the forgotten content.
    Configuration: `after_s`, the delay before erasure in seconds (30).
    """

    name: ClassVar[str] = "erase_forgotten"
    trigger: ClassVar[str] = "erase_forgotten"
    tools: ClassVar[tuple[str, ...]] = ("forgetting", "maintenance", "scratchpad")
    input_type: ClassVar[Any] = Erasing
    options: ClassVar[Options] = Options(timeout_s=PRUNE_WITHIN_S)

    async def before_all(self, run: RunContext) -> Any:
        until = run.now - run.config.get("after_s", AFTER_S)
        inputs = [
            Erasing(tenant_id=tenant_id, owner=owner).model_dump()
            for tenant_id, owner in await run.tools["forgetting"].owners(until)
        ]
        return before_all_response(inputs=inputs, data={"until": until})

    async def work(self, run: RunContext, item: Erasing, data: Json) -> bool:
        """Erase one user's forgotten content. Return False if a session was busy."""
        store, tenant_id, until = run.tools["forgetting"], item.tenant_id, run.data["until"]
        forgotten = await store.forgotten(tenant_id, item.owner, until)
        unwanted = collect_unwanted(forgotten)
        theirs = await run.tools["maintenance"].sessions_of(tenant_id, item.owner)
        await store.drop_documents(tenant_id, item.owner, theirs, unwanted)
        done = [await self._erase(run, tenant_id, session_id, unwanted) for session_id in theirs]
        if all(done):
            await store.finish(tenant_id, item.owner, forgotten, until)
        return all(done)

    async def _erase(
        self, run: RunContext, tenant_id: TenantId, session_id: SessionId, unwanted: Unwanted
    ) -> bool:
        """Erase the unwanted content from a session and its scratchpad.

        Return False, without changes, if a turn is running.
        """
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
