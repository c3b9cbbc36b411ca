"""`summarize_idle` starts summaries of idle sessions. `hand_over_context` resumes flows that waited for context."""

from typing import Any, ClassVar

from internal_flows.session.summarize_session import SummarizeSession
from internal_flows.stages import InternalFlow, RunContext, Urgency, before_all_response
from orchestrator.ports.memory.context import CONTEXT_READY, HAND_OVER_CONTEXT
from orchestrator.types import Json, SessionId

IDLE_S = 1800.0
LEAST_TURNS = 3


class SummarizeIdle(InternalFlow):
    """A flow that starts summaries of idle sessions with unsummarized turns.

    Configuration: `idle_s`, the minimum idle time in seconds (1800), and `least_turns`, the minimum number of
    unsummarized turns (3).
    """

    name: ClassVar[str] = "summarize_idle"
    trigger: ClassVar[str] = "summarize_idle"
    tools: ClassVar[tuple[str, ...]] = ("maintenance", "triggers")

    async def before_all(self, run: RunContext) -> Any:
        found = await run.tools["maintenance"].unsummarized(
            idle_s=run.config.get("idle_s", IDLE_S), least_turns=run.config.get("least_turns", LEAST_TURNS)
        )
        return before_all_response(inputs=[[*names] for names in found])

    async def work(self, run: RunContext, item: list[Json], data: Json) -> Json:
        tenant_id, session_id, epoch = item
        await run.tools["triggers"].start(
            SummarizeSession.trigger, tenant_id, SessionId(session_id), key=f"idle:{session_id}:{epoch}"
        )
        return session_id

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"started": len(outputs)}


class HandOverContext(InternalFlow):
    """A flow that submits a system turn, which resumes a dialogue flow after its context was gathered."""

    name: ClassVar[str] = HAND_OVER_CONTEXT
    trigger: ClassVar[str] = HAND_OVER_CONTEXT
    tools: ClassVar[tuple[str, ...]] = ("lanes",)
    urgency: ClassVar[Urgency] = Urgency.URGENT

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        if run.session_id is None:
            return None
        payload = {"flow_id": run.parameters.get("flow_id"), "run_id": run.parameters.get("run_id")}
        key = f"{CONTEXT_READY}:{run.parameters.get('run_id')}"
        return await run.tools["lanes"].submit(run.tenant_id, run.session_id, CONTEXT_READY, payload, key=key)
