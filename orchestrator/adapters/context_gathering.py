from collections.abc import Awaitable, Callable
from dataclasses import asdict

from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.ports.memory.context import GATHER_CONTEXT, ContextQuestion, Finding, Findings
from orchestrator.ports.runs.records import NewRun, Started
from orchestrator.ports.runs.status import OnFailure, RunStatus, Urgency
from orchestrator.types import JsonObject, TenantId, is_object


class RunsContextGathering:
    """A `ContextGathering` that starts one background run per question (PX-16).

    Args:
        wake: wakes a worker for the started run; must not raise.
    """

    def __init__(self, runs: PostgresRuns, wake: Callable[[Started], Awaitable[None]]) -> None:
        self._runs = runs
        self._wake = wake

    async def begin(self, question: ContextQuestion) -> str:
        run = NewRun(
            flow=GATHER_CONTEXT,
            parameters=_parameters(question),
            tenant_id=question.tenant_id,
            session_id=question.session_id,
            on_failure=OnFailure.RELEASE,
            urgency=Urgency.URGENT,
        )
        key = f"{GATHER_CONTEXT}:{question.turn_id}:{question.flow_id}"
        started = await self._runs.start((run,), key=key)
        await self._wake(started)
        return started.runs[GATHER_CONTEXT]

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> Findings | None:
        record = await self._runs.wait(tenant_id, run_id, timeout_s)
        if record is None:
            return None
        if record.status is not RunStatus.DONE or not is_object(record.closing):
            return Findings()
        return Findings(tuple(Finding.from_json(body) for body in record.closing["found"]))


def _parameters(question: ContextQuestion) -> JsonObject:
    """Return the question's fields except the tenant and session, which the run already has."""
    return {
        name: value for name, value in asdict(question).items() if name not in {"tenant_id", "session_id"}
    }
