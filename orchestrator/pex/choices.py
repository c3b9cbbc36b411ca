"""What the steps ask of a flow's policy: the choices that a domain may make its own."""

from __future__ import annotations

from typing import Protocol

from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.specification import ToolUse
from orchestrator.pex.arguments import Gathered
from orchestrator.pex.ending import Failed
from orchestrator.pex.execution import Execution
from orchestrator.pex.toolbox import Tool
from orchestrator.types import Dact, JsonObject


class Choices(Protocol):
    """`most_choices`: how many rows are offered when the user has to choose one."""

    most_choices: int

    def arguments(self, run: Execution, use: ToolUse, tool: Tool) -> Gathered: ...

    def summary(self, run: Execution, arguments: JsonObject) -> JsonObject: ...

    def keep(self, run: Execution) -> JsonObject: ...

    def label(self, run: Execution, row: JsonObject) -> str: ...

    def frame(self, run: Execution) -> Frame: ...

    def outputs(self, run: Execution) -> JsonObject: ...

    def fallback(self, run: Execution, failure: Failed) -> Dact | None: ...

    def summarise(self, run: Execution, tool: Tool, data: JsonObject) -> str: ...

    def note_effect(self, run: Execution, tool: Tool, arguments: JsonObject, data: JsonObject) -> None: ...
