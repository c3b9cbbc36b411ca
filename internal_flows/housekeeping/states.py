"""`abandon_flows` and `repair_state`: look through sessions at rest and propose what is to be put right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pydantic import BaseModel

from internal_flows.stages import InternalFlow, RunContext, before_all_response, skip
from orchestrator.ports.housekeeping import SessionState
from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId

ABANDON_AFTER_S = 86_400.0
PAGE = 500


class Found(BaseModel):
    """A session and what is to be proposed to its lane."""

    tenant_id: TenantId
    session_id: SessionId
    epoch: Epoch
    change: JsonObject
    why: list[str]


class _Proposing(InternalFlow, ABC):
    """Looks at every session with open tasks; what `find` says of one is proposed."""

    tools: ClassVar[tuple[str, ...]] = ("housekeeping", "proposals")
    input_type: ClassVar[Any] = Found
    proposes: ClassVar[str]

    def quiet_for_s(self, run: RunContext) -> float:
        """Sessions that were at work since are left alone."""
        return run.config.get("quiet_for_s", 60.0)

    @abstractmethod
    def find(self, run: RunContext, session: SessionState) -> tuple[JsonObject, list[str]] | None:
        """Find a change to propose, and why; None: nothing."""

    async def before_all(self, run: RunContext) -> Any:
        found: list[Json] = []
        after = ""
        while page := await run.tools["housekeeping"].states(
            quiet_for_s=self.quiet_for_s(run), after=after, limit=PAGE
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
        """A dry run only records what would be proposed."""
        return skip("dry run: " + " ".join(item.why)) if run.config.get("dry_run") else item

    async def output(self, run: RunContext, item: Found, data: Json, result: Json) -> Json:
        turn_id = await run.tools["proposals"].propose(
            item.tenant_id,
            item.session_id,
            self.proposes,
            item.change,
            epoch=item.epoch,
            flow=self.name,
            run_id=run.run_id,
        )
        return {"session_id": item.session_id, "turn_id": turn_id, "why": item.why}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"proposed": sum(output is not None for output in outputs)}


class AbandonFlows(_Proposing):
    """Configuration: `abandon_after_s` (a day), `dry_run`."""

    name: ClassVar[str] = "abandon_flows"
    trigger: ClassVar[str] = "abandon_flows"
    proposes: ClassVar[str] = "abandon"

    def quiet_for_s(self, run: RunContext) -> float:
        return run.config.get("abandon_after_s", ABANDON_AFTER_S)

    def find(self, run: RunContext, session: SessionState) -> tuple[JsonObject, list[str]] | None:
        waiting = [flow["dact"] for flow in session.state["stack"] if flow.get("reason") == "interrupted"]
        if not waiting:
            return None
        why = [f"{dact} was interrupted and not taken up again." for dact in waiting]
        return {"older_than_s": self.quiet_for_s(run)}, why


class RepairState(_Proposing):
    """Configuration: `quiet_for_s` (a minute), `dry_run`."""

    name: ClassVar[str] = "repair_state"
    trigger: ClassVar[str] = "repair_state"
    proposes: ClassVar[str] = "repair"

    def find(self, run: RunContext, session: SessionState) -> tuple[JsonObject, list[str]] | None:
        wrong = find_violations(session.state)
        return ({}, wrong) if wrong else None


def find_violations(state: JsonObject) -> list[str]:
    """Sentences about what is wrong with a serialised state (FS-8, PX-17)."""
    stack = state["stack"]
    wrong = [f"{flow['dact']} is Active below the top." for flow in stack[:-1] if flow["state"] == "Active"]
    if stack and stack[-1].get("reason") == "interrupted":
        wrong.append(f"{stack[-1]['dact']} on top is interrupted.")
    there = {flow["flow_id"] for flow in stack}
    wrong += [
        f"An approval belongs to {approval['flow_id']}, which is gone."
        for approval in state["approvals"]
        if approval["flow_id"] not in there
    ]
    return wrong
