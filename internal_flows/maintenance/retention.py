"""`expire_sessions`, `prune_archive` and `prune_runtime`: delete old data."""

from typing import Any, ClassVar

from pydantic import BaseModel

from internal_flows.stages import InternalFlow, Options, RunContext, before_all_response, redo_run
from orchestrator.types import Json, SessionId, TenantId

_DAY_S = 86_400.0
BATCH = 500
PRUNE_WITHIN_S = 600.0
"""Maximum time that a run spends on deleting, in seconds. A rerun deletes the remaining data."""


async def delete_session(run: RunContext, tenant_id: TenantId, session_id: SessionId) -> None:
    """Delete a session and its scratchpad. Requires the tools `maintenance` and `scratchpad`."""
    pad = run.tools["scratchpad"]
    await pad.forget(tenant_id, session_id)
    await run.tools["maintenance"].delete_session(tenant_id, session_id)
    # Another process may have added entries in the meantime. Deleted sessions accept no new entries.
    await pad.forget(tenant_id, session_id)


class Expiring(BaseModel):
    """A session and the action for it. `what`: ``close`` or ``delete``."""

    tenant_id: TenantId
    session_id: SessionId
    what: str


class ExpireSessions(InternalFlow):
    """A flow that closes inactive sessions and deletes sessions closed long ago.

    A closed session stays readable until its deletion. A full batch requests a rerun. Configuration, in
    seconds: `idle_s` until a session is closed (7 days), `retention_s` until it is deleted (90 days).
    """

    name: ClassVar[str] = "expire_sessions"
    trigger: ClassVar[str] = "expire_sessions"
    tools: ClassVar[tuple[str, ...]] = ("maintenance", "sessions", "scratchpad")
    input_type: ClassVar[Any] = Expiring
    options: ClassVar[Options] = Options(concurrency=2)

    async def before_all(self, run: RunContext) -> Any:
        store = run.tools["maintenance"]
        idle = await store.idle(idle_s=run.config.get("idle_s", 7 * _DAY_S), limit=BATCH)
        expired = await store.expired(retention_s=run.config.get("retention_s", 90 * _DAY_S), limit=BATCH)
        inputs = [
            {"tenant_id": tenant_id, "session_id": session_id, "what": what}
            for what, names in (("close", idle), ("delete", expired))
            for tenant_id, session_id in names
        ]
        return before_all_response(inputs=inputs, data={"full": BATCH in {len(idle), len(expired)}})

    async def work(self, run: RunContext, item: Expiring, data: Json) -> str:
        tenant_id, session_id = item.tenant_id, item.session_id
        if item.what == "close":
            await run.tools["sessions"].close(tenant_id, session_id)
        else:
            await delete_session(run, tenant_id, session_id)
        return item.what

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Any:
        if run.data["full"]:
            return redo_run()
        return {"closed": outputs.count("close"), "deleted": outputs.count("delete")}


class PruneArchive(InternalFlow):
    """A flow that deletes old archive entries.

    Configuration: the maximum number of entries to keep per session, as `keep_flows` (1000) for flows and
    `keep_epochs` (1000) for versions of the state.
    """

    name: ClassVar[str] = "prune_archive"
    trigger: ClassVar[str] = "prune_archive"
    tools: ClassVar[tuple[str, ...]] = ("maintenance",)
    options: ClassVar[Options] = Options(timeout_s=2 * PRUNE_WITHIN_S)
    redo_ceiling: ClassVar[int | None] = None

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Any:
        counts, all_gone = await run.tools["maintenance"].prune_archive(
            keep_flows=run.config.get("keep_flows", 1000),
            keep_epochs=run.config.get("keep_epochs", 1000),
            within_s=PRUNE_WITHIN_S,
        )
        return counts if all_gone else redo_run()


class PruneRuntime(InternalFlow):
    """A flow that deletes old events, journal steps, runs, firings and scheduled events.

    Configuration: `older_than_s`, the minimum age in seconds (30 days).
    """

    name: ClassVar[str] = "prune_runtime"
    trigger: ClassVar[str] = "prune_runtime"
    tools: ClassVar[tuple[str, ...]] = ("maintenance",)
    options: ClassVar[Options] = Options(timeout_s=2 * PRUNE_WITHIN_S)
    redo_ceiling: ClassVar[int | None] = None

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Any:
        counts, all_gone = await run.tools["maintenance"].prune_runtime(
            older_than_s=run.config.get("older_than_s", 30 * _DAY_S), within_s=PRUNE_WITHIN_S
        )
        return counts if all_gone else redo_run()
