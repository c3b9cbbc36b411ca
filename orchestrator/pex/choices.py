"""What the steps ask of a flow's policy: the choices that a domain may make its own."""

from __future__ import annotations

from typing import Protocol

from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.specification import ToolUse
from orchestrator.pex.arguments import Gathered
from orchestrator.pex.execution import Execution, Failed
from orchestrator.pex.outcome import Outcome
from orchestrator.tools.guardrails import Entities
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, JsonObject


class Skills(Protocol):
    """Runs skills; made in `skills`, for the whole domain."""

    def can_run(self, dact: Dact) -> bool:
        """Whether the domain has a skill for this flow, and a model can be asked."""
        ...

    async def run(self, run: Execution, policy: Choices) -> Outcome:
        """Carry the flow out."""
        ...


class Choices(Protocol):
    """`most_choices`: how many rows are offered when the user has to choose one. `skills`: None: none run."""

    most_choices: int
    skills: Skills | None

    def entities(self, run: Execution) -> Entities | None: ...

    def arguments(self, run: Execution, use: ToolUse, tool: Tool) -> Gathered: ...

    def find_fault(self, run: Execution, data: JsonObject) -> str | None: ...

    def summary(self, run: Execution, arguments: JsonObject) -> JsonObject: ...

    def keep(self, run: Execution) -> JsonObject: ...

    def label(self, run: Execution, row: JsonObject) -> str: ...

    def frame(self, run: Execution) -> Frame: ...

    def outputs(self, run: Execution) -> JsonObject: ...

    def fallback(self, run: Execution, failure: Failed) -> Dact | None: ...

    def summarise(self, run: Execution, tool: Tool, data: JsonObject) -> str: ...

    def note_effect(self, run: Execution, tool: Tool, arguments: JsonObject, data: JsonObject) -> None: ...
