"""The tool calls that a skill makes: a component's at once, a flow's tool through all that guards it.

Whatever goes wrong with a call is told to the skill; it is never an error of the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from orchestrator.domain.model import SkillSpec
from orchestrator.errors import FailureCategory
from orchestrator.models.structured import ToolRequest
from orchestrator.pex.calls.candidate import (
    Candidate,
    drop_candidate,
    read_candidate,
    write_candidate,
)
from orchestrator.pex.calls.guarded_call import Carried, carry, make_candidate
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.pex.outcome import Interrupted
from orchestrator.pex.skills.components import COMPONENTS, use_component
from orchestrator.pex.skills.reflect import Clock
from orchestrator.ports.models import ToolDefinition
from orchestrator.tools.guardrails import Rejected
from orchestrator.tools.toolbox import Tool, ToolData, ToolError
from orchestrator.tools.trifecta import tools_to_approve
from orchestrator.types import Json, JsonObject, ToolId

LONGEST_RESULT = 20_000
"""Characters of a tool's result that are shown to the model."""
COMPONENT_NAMES = frozenset(component.name for component in COMPONENTS)


@dataclass(slots=True)
class Calls:
    """The calls of one run. `effects`: results of tools that are not idempotent, by call: none is made twice."""

    run: Execution
    policy: Choices
    tools: Mapping[str, Tool]
    clock: Clock
    made: int = 0
    effects: dict[bytes, JsonObject] = field(default_factory=dict[bytes, JsonObject])

    @classmethod
    def of(cls, run: Execution, policy: Choices, skill: SkillSpec, clock: Clock) -> Calls:
        found = {tool_id: run.tools.find(tool_id) for tool_id in skill.tools}
        return cls(run, policy, {name: tool for name, tool in found.items() if tool is not None}, clock)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model is offered, besides `finish`."""
        of_flow = [
            ToolDefinition(str(name), tool.spec.description or tool.spec.name, tool.spec.input_schema)
            for name, tool in self.tools.items()
        ]
        return (*of_flow, *COMPONENTS)

    @property
    def changed(self) -> bool:
        """Whether a call of this run changed something."""
        return any(told["ok"] for told in self.effects.values())

    async def make_agreed(self) -> JsonObject | Interrupted | None:
        """Make the call that the user has said yes to since the skill asked for it; what came of it."""
        candidate = read_candidate(self.run.flow)
        if candidate is None or not candidate.confirmed:
            return None
        tool = self.run.tools.find(candidate.tool_id)
        assert tool is not None, "a candidate is made from a tool of the flow"
        result = await self._carry(tool, candidate.arguments, candidate)
        if isinstance(result, Interrupted):
            return result
        drop_candidate(self.run.flow)  # the yes was for one call, whatever came of it
        return {"tool": candidate.tool_id, "arguments": candidate.arguments, "result": result}

    async def make(self, request: ToolRequest) -> Json | Interrupted:
        """Make one call; its arguments fit the schema that the model was shown."""
        self.made += 1
        if self.made > self.run.context.world.domain.config.resilience.skill_calls:
            return _refuse("there are no calls left; end the task with what there is")
        if request.name in COMPONENT_NAMES:
            async with self.clock.limit():
                return await use_component(self.run, request.name, request.arguments)
        tool = self.tools[request.name]
        known = self.effects.get(_name_call(tool.spec.tool_id, request.arguments))
        if known is not None:
            return {**known, "note": "this call was made before and is not repeated; this is its result"}
        return await self._carry(tool, request.arguments, None)

    async def _carry(
        self, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
    ) -> JsonObject | Interrupted:
        self._renew_gate()
        if not tool.spec.idempotent:
            self.clock.check()  # once begun, such a call is not cut off: its own time-out ends it
            return self._take(tool, arguments, await carry(self.run, self.policy, tool, arguments, confirmed))
        async with self.clock.limit():
            carried = await carry(self.run, self.policy, tool, arguments, confirmed)
        return self._take(tool, arguments, carried)

    def _renew_gate(self) -> None:
        """What the skill has read since may have brought labels along (PX-3)."""
        found = [self.run.tools.find(use.tool_id) for use in self.run.flow.spec.tools]
        self.run.gated = tools_to_approve(
            [tool for tool in found if tool], self.run.context.changes.state.intake.labels
        )

    def _take(self, tool: Tool, arguments: JsonObject, carried: Carried) -> JsonObject | Interrupted:
        match carried:
            case ToolData(data):
                told = _shorten(data)
            case ToolError(category, message):
                told = _tell_error(category, message)
            case Rejected():
                return _tell_rejection(carried)
            case Parked():
                self._remember(tool, arguments)
                return Interrupted(carried)
            case NeedsInput():
                return Interrupted(carried)
        if not tool.spec.idempotent:
            self.effects[_name_call(tool.spec.tool_id, arguments)] = told
        return told

    def _remember(self, tool: Tool, arguments: JsonObject) -> None:
        """Exactly the call that is approved is made when the flow goes on."""
        if read_candidate(self.run.flow) is None:
            candidate = make_candidate(self.run, self.policy, tool, arguments, confirmed=True)
            write_candidate(self.run.flow, candidate)


def _name_call(tool_id: ToolId, arguments: JsonObject) -> bytes:
    return orjson.dumps([tool_id, arguments], option=orjson.OPT_SORT_KEYS)


def _refuse(message: str) -> JsonObject:
    return {"ok": False, "error": {"category": "refused", "message": message}}


def _tell_error(category: FailureCategory, message: str) -> JsonObject:
    return {"ok": False, "error": {"category": category.value, "message": message}}


def _tell_rejection(rejected: Rejected) -> JsonObject:
    """Why code was not run, so that the model can write it better."""
    error: JsonObject = {"category": rejected.category.value, "message": rejected.message}
    if rejected.suggestion is not None:
        error["suggestion"] = rejected.suggestion
    return {"ok": False, "error": error}


def _shorten(data: JsonObject) -> JsonObject:
    text = orjson.dumps(data).decode()
    if len(text) <= LONGEST_RESULT:
        return {"ok": True, "data": data}
    return {"ok": True, "cut": True, "characters": len(text), "beginning": text[:LONGEST_RESULT]}
