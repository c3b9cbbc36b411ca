"""Makes the tool calls of a skill: a component's at once, a flow's tool through all that guards it.

Whatever goes wrong with a call is reported to the skill; it is never an error of the turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from orchestrator.models.structured import ToolRequest
from orchestrator.pex.calls.consent import (
    Candidate,
    drop_candidate,
    make_candidate,
    read_candidate,
    write_candidate,
)
from orchestrator.pex.calls.guarded_call import GuardedAnswer, call_guarded
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.pex.skill_outcome import Interrupted
from orchestrator.pex.skills.components import COMPONENTS, use_component
from orchestrator.pex.skills.time_limit import Clock
from orchestrator.ports.language_model import ToolDefinition
from orchestrator.tools.guardrails.verdict import Rejected
from orchestrator.tools.toolbox import Tool, ToolData, ToolError
from orchestrator.types import Json, JsonObject, ToolId

LONGEST_RESULT = 20_000  # characters of a tool's result that are shown to the model
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

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Define what the model is offered, besides `finish`."""
        of_flow = [
            ToolDefinition(str(name), tool.spec.description or tool.spec.name, tool.spec.input_schema)
            for name, tool in self.tools.items()
        ]
        return (*of_flow, *COMPONENTS)

    @property
    def changed(self) -> bool:
        """Say whether a call of this run changed something."""
        return any(answer["ok"] for answer in self.effects.values())

    async def make_agreed(self) -> JsonObject | Interrupted | None:
        """Make the call that the user has said yes to since the skill asked for it; say what came of it."""
        candidate = read_candidate(self.run.context.changes.state, self.run.flow)
        if candidate is None or not candidate.confirmed:
            return None
        tool = self.run.tools.find(candidate.tool_id)
        assert tool is not None, "a candidate is made from a tool of the flow"
        result = await self._call(tool, candidate.arguments, candidate)
        if isinstance(result, Interrupted):
            return result
        drop_candidate(self.run.flow)  # the yes was for one call, whatever came of it
        return {"tool": candidate.tool_id, "arguments": candidate.arguments, "result": result}

    async def make(self, request: ToolRequest) -> Json | Interrupted:
        """Make one call; its arguments fit the schema that the model was shown."""
        self.made += 1
        if self.made > self.run.context.world.domain.config.resilience.skill_calls:
            return _fail("refused", "there are no calls left; end the task with what there is")
        if request.name in COMPONENT_NAMES:
            async with self.clock.limit():
                return await use_component(self.run, request.name, request.arguments)
        tool = self.tools[request.name]
        known = self.effects.get(_name_call(tool.spec.tool_id, request.arguments))
        if known is not None:
            return {**known, "note": "this call was made before and is not repeated; this is its result"}
        return await self._call(tool, request.arguments, None)

    async def _call(
        self, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
    ) -> JsonObject | Interrupted:
        if not tool.has_effect:
            async with self.clock.limit():
                answer = await call_guarded(self.run, self.policy, tool, arguments, confirmed)
        else:
            self.clock.check()  # once begun, such a call is not cut off: its own time-out ends it
            answer = await call_guarded(self.run, self.policy, tool, arguments, confirmed)
        return self._take(tool, arguments, answer)

    def _take(self, tool: Tool, arguments: JsonObject, answer: GuardedAnswer) -> JsonObject | Interrupted:
        match answer:
            case ToolData(data):
                result = _shorten(data)
            case ToolError(category, message):
                result = _fail(category.value, message)
            case Rejected(category, message, suggestion):  # so that the model can write the code better
                return _fail(
                    category.value, message, **({} if suggestion is None else {"suggestion": suggestion})
                )
            case Parked():
                self._remember(tool, arguments)
                return Interrupted(answer)
            case NeedsInput():
                return Interrupted(answer)
        if tool.has_effect:
            self.effects[_name_call(tool.spec.tool_id, arguments)] = result
        return result

    def _remember(self, tool: Tool, arguments: JsonObject) -> None:
        """Remember the call: exactly the one that is approved is made when the flow goes on."""
        if read_candidate(self.run.context.changes.state, self.run.flow) is None:
            candidate = make_candidate(self.run, self.policy, tool, arguments, confirmed=True)
            write_candidate(self.run.flow, candidate)


def _name_call(tool_id: ToolId, arguments: JsonObject) -> bytes:
    return orjson.dumps([tool_id, arguments], option=orjson.OPT_SORT_KEYS)


def _fail(category: str, message: str, **more: str) -> JsonObject:
    return {"ok": False, "error": {"category": category, "message": message, **more}}


def _shorten(data: JsonObject) -> JsonObject:
    text = orjson.dumps(data).decode()
    if len(text) <= LONGEST_RESULT:
        return {"ok": True, "data": data}
    return {"ok": True, "cut": True, "characters": len(text), "beginning": text[:LONGEST_RESULT]}
