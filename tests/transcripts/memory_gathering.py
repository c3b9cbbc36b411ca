"""Context gathering in memory: tests control the findings of Internal flows, and their time."""

from __future__ import annotations

from orchestrator.ports.memory.context import ContextQuestion, Findings
from orchestrator.types import TenantId


class MemoryContextGathering:
    """An in-memory `ports.memory.context.ContextGathering`.

    A question without findings is still being searched.
    """

    def __init__(self, *ready: Findings) -> None:
        """Initialize with `ready`, the immediate findings of the first questions."""
        self.asked: dict[str, ContextQuestion] = {}
        self._ready = list(ready)
        self._found: dict[str, Findings] = {}

    async def begin(self, question: ContextQuestion) -> str:
        run_id = f"run_{question.turn_id}_{question.flow_id}"
        if run_id not in self.asked:
            self.asked[run_id] = question
            if self._ready:
                self.find(run_id, self._ready.pop(0))
        return run_id

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> Findings | None:
        del tenant_id, timeout_s
        return self._found.get(run_id)

    def find(self, run_id: str, findings: Findings) -> None:
        """End the search for a question."""
        self._found[run_id] = findings
