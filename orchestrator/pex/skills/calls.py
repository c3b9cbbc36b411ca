"""A skill's tool calls. Built-in tools run directly; calls to the flow's tools pass through all guards.

A failed call is reported to the skill and never fails the turn.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from orchestrator.dialogue.consent import drop_candidate, propose, read_candidate, read_confirmed
from orchestrator.dialogue.progress import AwaitedCall, Candidate
from orchestrator.domain.portable import simplify
from orchestrator.errors import FailureCategory
from orchestrator.models.structured import ToolRequest
from orchestrator.pex.calls.consent import make_candidate
from orchestrator.pex.calls.guarded_call import GuardedAnswer, call_guarded
from orchestrator.pex.calls.later import continue_awaited, find_awaited
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution, NeedsInput, Parked
from orchestrator.pex.skill_outcome import Interrupted
from orchestrator.pex.skills.components import COMPONENTS, use_component
from orchestrator.ports.language_model import ToolDefinition
from orchestrator.tools.guardrails.verdict import RejectedCode
from orchestrator.tools.toolbox import Tool, ToolData, ToolError
from orchestrator.types import Json, JsonObject, ToolId, is_list, is_object

LONGEST_RESULT = 20_000  # characters of a tool result that the model receives


class SkillTimedOut(Exception):
    """Raised if a skill exceeds its time limit."""


class Clock:
    def __init__(self, allowed_s: float, turn_ends: float | None) -> None:
        """Start the clock. `turn_ends`: the turn's deadline in seconds of `time.monotonic`, or None."""
        mine = time.monotonic() + allowed_s
        self.ends = mine if turn_ends is None else min(mine, turn_ends)

    @property
    def left_s(self) -> float:
        return self.ends - time.monotonic()

    def check(self) -> None:
        """Raise SkillTimedOut if the time is up."""
        if self.left_s <= 0:
            raise SkillTimedOut

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Interrupt the block at the time limit and raise SkillTimedOut."""
        self.check()
        deadline = asyncio.timeout(self.left_s)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise SkillTimedOut from error


@dataclass(slots=True)
class Calls:
    """The tool calls of one skill run.

    Attributes:
        components: names of the built-in tools that SKILL.md lists.
        failed: the category of the last call's failure, or None.
        effects: results of calls with side effects, by call. Such calls are not repeated.
    """

    run: Execution
    policy: Choices
    tools: Mapping[str, Tool]
    components: Collection[str]
    clock: Clock
    made: int = 0
    failed: FailureCategory | None = None
    effects: dict[bytes, JsonObject] = field(default_factory=dict[bytes, JsonObject])

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools offered to the model, except `finish`."""
        of_flow = [
            ToolDefinition(
                str(name),
                tool.spec.description or tool.spec.name,
                simplify(tool.spec.input_schema),
                judged_by=tool.spec.input_schema,
            )
            for name, tool in self.tools.items()
        ]
        return (*of_flow, *(one for one in COMPONENTS if one.name in self.components))

    @property
    def changed(self) -> bool:
        """Return whether a call of this run had a side effect."""
        return any(answer["ok"] for answer in self.effects.values())

    async def make_agreed(self) -> JsonObject | Interrupted | None:
        """Run the confirmed pending call, or continue an accepted call.

        Return the call with its result, or Interrupted. Return None if there is no such call.
        """
        confirmed = read_confirmed(self.run.context.state, self.run.flow)
        pending = find_awaited(self.run, confirmed) or confirmed
        if pending is None:
            return None
        tool = self.run.tools.find(pending.tool_id)
        assert tool is not None, "the pending call must use one of the flow's tools"
        if isinstance(pending, AwaitedCall):
            answer = continue_awaited(self.run, self.policy, tool, pending)
            result = self._take(tool, pending.arguments, answer)
        else:
            result = await self._call(tool, pending.arguments, pending)
        if isinstance(result, Interrupted):
            return result
        if pending is confirmed:
            drop_candidate(self.run.flow)  # the confirmation was for one call, regardless of the result
        return {"tool": pending.tool_id, "arguments": pending.arguments, "result": result}

    async def make(self, request: ToolRequest) -> Json | Interrupted:
        """Run a call with valid arguments. Return its result for the model, or Interrupted."""
        self.made += 1
        if self.made > self.run.context.world.domain.config.resilience.skill_calls:
            return _fail("refused", "no calls are left; end the task with the results so far")
        if request.name in self.components:
            async with self.clock.limit():
                return await use_component(self.run, request.name, request.arguments)
        tool = self.tools[request.name]
        known = self.effects.get(_name_call(tool.spec.tool_id, request.arguments))
        if known is not None:
            return {**known, "note": "this call was already made and is not repeated; its result follows"}
        return await self._call(tool, request.arguments, None)

    async def _call(
        self, tool: Tool, arguments: JsonObject, confirmed: Candidate | None
    ) -> JsonObject | Interrupted:
        if not tool.has_effect:
            async with self.clock.limit():
                answer = await call_guarded(self.run, self.policy, tool, arguments, confirmed)
        else:
            self.clock.check()  # the clock never interrupts a call with a side effect; its own timeout does
            answer = await call_guarded(self.run, self.policy, tool, arguments, confirmed)
        return self._take(tool, arguments, answer)

    def _take(self, tool: Tool, arguments: JsonObject, answer: GuardedAnswer) -> JsonObject | Interrupted:
        self.failed = None
        match answer:
            case ToolData(data):
                result = _shorten(_drop_hidden(data, tool.spec.output_schema, self._inputs()))
            case ToolError(category, message):
                self.failed = category
                result = _fail(category.value, str(message))
            case RejectedCode(category, message, suggestion):  # the suggestion helps the model fix the code
                self.failed = FailureCategory.VALIDATION_ERROR
                return _fail(
                    category.value, message, **({} if suggestion is None else {"suggestion": suggestion})
                )
            case Parked():
                self._remember(tool, arguments)
                return answer
            case NeedsInput():
                return answer
        if tool.has_effect:
            self.effects[_name_call(tool.spec.tool_id, arguments)] = result
        return result

    def _inputs(self) -> set[str]:
        """Return the inputs of the skill's tools.

        The model sees a hidden value only if a tool takes it as input.
        """
        return {name for tool in self.tools.values() for name in tool.spec.input_schema.get("properties", {})}

    def _remember(self, tool: Tool, arguments: JsonObject) -> None:
        """Store the call, so that the resumed flow makes exactly the approved call."""
        if self.run.flow.progress.awaits is not None:
            return  # the tool has already accepted the call
        if read_candidate(self.run.context.state, self.run.flow) is None:
            candidate = make_candidate(self.run, self.policy, tool, arguments, agreed=True)
            propose(self.run.flow, candidate)


def _name_call(tool_id: ToolId, arguments: JsonObject) -> bytes:
    return orjson.dumps([tool_id, arguments], option=orjson.OPT_SORT_KEYS)


def _fail(category: str, message: str, **more: str) -> JsonObject:
    return {"ok": False, "error": {"category": category, "message": message, **more}}


def _drop_hidden(data: Json, schema: Json, wanted: Collection[str]) -> Json:
    """Return the data without the keys marked `x-hidden`, except those in `wanted`."""
    if not is_object(schema):
        return data
    if is_list(data):
        return [_drop_hidden(item, schema.get("items"), wanted) for item in data]
    if not is_object(data):
        return data
    fields: JsonObject = schema.get("properties") or {}
    hidden = {name for name, field in fields.items() if is_object(field) and field.get("x-hidden")}
    return {
        name: _drop_hidden(value, fields.get(name), wanted)
        for name, value in data.items()
        if name not in hidden or name in wanted
    }


def _shorten(data: JsonObject) -> JsonObject:
    text = orjson.dumps(data).decode()
    if len(text) <= LONGEST_RESULT:
        return {"ok": True, "data": data}
    return {"ok": True, "cut": True, "characters": len(text), "beginning": text[:LONGEST_RESULT]}
