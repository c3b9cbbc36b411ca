"""`abandon_flows` and `repair_state`: check idle sessions and propose corrections."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from internal_flows.stages import InternalFlow, RunContext, before_all_response, redo_run, skip
from orchestrator.dialogue.changes.repair import repair
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.ports.maintenance import SessionRows, SessionState
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId

REPAIR_STATE: Final = "repair_state"
"""Trigger of `RepairState`. Workers also start it after another worker's death."""
ABANDON_AFTER_S = 86_400.0
PAGE = 500


class Found(BaseModel):
    """A session and a change to propose to its session lane."""

    tenant_id: TenantId
    session_id: SessionId
    epoch: Epoch
    change: JsonObject
    why: list[str]


class _Proposing(InternalFlow, ABC):
    """A flow that examines idle sessions with open tasks or approvals, and proposes what `find` returns."""

    tools: ClassVar[tuple[str, ...]] = ("maintenance", "proposals")
    input_type: ClassVar[Any] = Found
    proposes: ClassVar[str]

    def quiet_for_s(self, run: RunContext) -> float:
        """Return the minimum idle time of sessions to examine, in seconds."""
        return run.config.get("quiet_for_s", 60.0)

    @abstractmethod
    def find(self, run: RunContext, session: SessionState) -> tuple[JsonObject, list[str]] | None:
        """Return a change to propose with its reasons, or None if no change is needed."""

    async def before_all(self, run: RunContext) -> Any:
        found: list[Json] = []
        after = ""
        while page := await run.tools["maintenance"].states(
            quiet_for_s=self.quiet_for_s(run), after=after, limit=PAGE, among=run.parameters.get("sessions")
        ):
            found += [one.model_dump() for session in page if (one := self._look(run, session)) is not None]
            after = page[-1].session_id
        return before_all_response(inputs=found)

    def _look(self, run: RunContext, session: SessionState) -> Found | None:
        found = self.find(run, session)
        if found is None:
            return None
        change, why = found
        return Found(
            tenant_id=session.tenant_id,
            session_id=session.session_id,
            epoch=session.epoch,
            change=change,
            why=why,
        )

    async def data(self, run: RunContext, item: Found) -> Any:
        return skip("dry run: " + " ".join(item.why)) if run.config.get("dry_run") else item

    async def output(self, run: RunContext, item: Found, data: Json, result: Json) -> Json:
        await run.tools["proposals"].propose(
            item.tenant_id,
            item.session_id,
            self.proposes,
            item.change,
            epoch=item.epoch,
            flow=self.name,
            run_id=run.run_id,
        )
        return {"session_id": item.session_id, "why": item.why}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"proposed": sum(output is not None for output in outputs)}


class AbandonFlows(_Proposing):
    """A flow that proposes to abandon dialogue flows that were interrupted and not resumed.

    Configuration: `abandon_after_s`, the minimum idle time in seconds (a day), and `dry_run` (don't propose
    changes).
    """

    name: ClassVar[str] = "abandon_flows"
    trigger: ClassVar[str] = "abandon_flows"
    proposes: ClassVar[str] = "abandon"

    def quiet_for_s(self, run: RunContext) -> float:
        return run.config.get("abandon_after_s", ABANDON_AFTER_S)

    def find(self, run: RunContext, session: SessionState) -> tuple[JsonObject, list[str]] | None:
        waiting = [flow["dact"] for flow in session.state["stack"] if flow.get("reason") == "interrupted"]
        if not waiting:
            return None
        why = [f"{dact} was interrupted and not resumed." for dact in waiting]
        return {"older_than_s": self.quiet_for_s(run)}, why


class BrokenRows(BaseModel):
    """A session with turns, frames or plans that contradict its state."""

    tenant_id: TenantId
    session_id: SessionId
    why: list[str]


class RepairState(_Proposing):
    """A flow that finds inconsistencies, on schedule or in a dead worker's sessions (parameter `sessions`).

    A new finding is only recorded in the scratchpad, and the run requests a rerun. If the rerun confirms the
    finding, it proposes the change to the session lane, or repairs the rows in other tables. Configuration:
    `quiet_for_s`, the minimum idle time in seconds (60), and `dry_run` (only record findings).
    """

    name: ClassVar[str] = "repair_state"
    trigger: ClassVar[str] = REPAIR_STATE
    tools: ClassVar[tuple[str, ...]] = ("maintenance", "proposals", "scratchpad")
    input_type: ClassVar[Any] = Found | BrokenRows
    proposes: ClassVar[str] = "repair"

    def quiet_for_s(self, run: RunContext) -> float:
        return 0.0 if "sessions" in run.parameters else super().quiet_for_s(run)

    def find(self, run: RunContext, session: SessionState) -> tuple[JsonObject, list[str]] | None:
        repaired, wrong = repair(session.state)
        return ({"diff": diff(session.state, repaired)}, wrong) if wrong else None

    async def before_all(self, run: RunContext) -> Any:
        found = list((await super().before_all(run)).inputs)
        after, store = "", run.tools["maintenance"]
        while page := await store.broken(
            quiet_for_s=self.quiet_for_s(run), after=after, limit=PAGE, among=run.parameters.get("sessions")
        ):
            for rows in page:
                if why := describe_rows(rows):
                    one = BrokenRows(tenant_id=rows.tenant_id, session_id=rows.session_id, why=why)
                    found.append(one.model_dump())
            after = page[-1].session_id
        return before_all_response(inputs=found)

    async def data(self, run: RunContext, item: Found | BrokenRows) -> Any:
        """Record and skip new findings. Return known findings, so that the run repairs them, except in a dry run."""
        pad, kind = run.tools["scratchpad"], type(item).__name__
        entry_id, told = f"{self.name}:{kind}", item.model_dump(mode="json")
        noted = await pad.read(
            item.tenant_id, item.session_id, kinds=frozenset({EntryKind.RESULT}), touch=False
        )
        if any(entry.entry_id == entry_id and entry.data == told for entry in noted):
            if not run.config.get("dry_run"):
                return item
        else:
            note = Entry(
                self.name, f"run {run.run_id}", EntryKind.RESULT, run.now, data=told, entry_id=entry_id
            )
            await pad.put(item.tenant_id, item.session_id, (note,), operation=f"{run.run_id}:{entry_id}")
        return skip("dry run: " + " ".join(item.why))

    async def output(self, run: RunContext, item: Found | BrokenRows, data: Json, result: Json) -> Json:
        if isinstance(item, Found):
            return await super().output(run, item, data, result)
        repaired = await run.tools["maintenance"].repair(item.session_id)
        return {"session_id": item.session_id, "repaired": repaired, "why": item.why}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Any:
        if None in outputs and not run.config.get("dry_run") and run.redo_count is None:
            return redo_run()
        return await super().after_all(run, outputs)


def describe_rows(rows: SessionRows) -> list[str]:
    counts = {
        "Turns left running": rows.turns,
        "Frames of flows that no longer exist": rows.frames,
        "Open plans that are not on the stack": rows.plans,
    }
    return [f"{what}: {count}." for what, count in counts.items() if count]
