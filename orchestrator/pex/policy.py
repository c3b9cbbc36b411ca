"""The policy of a flow: the skeleton that every flow goes through, each step and choice a method (PX-1).

Public to domains: subclass, override one method. A policy holds no state of a turn; the execution does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.records import EffectNote
from orchestrator.dialogue.specification import FlowSpec, ToolUse
from orchestrator.errors import FailureCategory
from orchestrator.pex.arguments import Gathered, gather_arguments
from orchestrator.pex.choices import Skills
from orchestrator.pex.execution import Completed, Ending, Execution, Failed, Partial
from orchestrator.pex.steps.check import check, check_slots
from orchestrator.pex.steps.complete import complete
from orchestrator.pex.steps.invoke import invoke
from orchestrator.pex.steps.recover import recover
from orchestrator.pex.steps.repair import FrameWriter, repair
from orchestrator.pex.steps.results import make_frame, results
from orchestrator.pex.steps.review import review
from orchestrator.pex.steps.verify import verify
from orchestrator.tools.guardrails import Entities
from orchestrator.tools.runner import keep_note, make_effect
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject

Step = Callable[[Execution], Awaitable[Ending | None]]

SHORT_TEXT = 200
"""Longer texts of an earlier tool are not kept with a candidate."""


class BasePolicy:
    """One per flow type and process.

    The steps return None to go on, or an ending. The choices (`entities`, `arguments`, `find_fault`,
    `summary`, `label`, `frame`, `outputs`, `fallback`) are what a domain most often overrides.
    """

    dact: ClassVar[str | None] = None
    """The flow that a domain's policy is for; a flow may also name its policy in its YAML."""

    most_choices = 5
    """How many rows are offered when the user has to choose one."""

    skills: Skills | None = None
    """Runs the flow's skill; set where models can be asked."""

    writer: FrameWriter | None = None
    """Chooses other forms for frames; set where models can be asked."""

    def __init__(self, spec: FlowSpec) -> None:
        self.spec = spec

    async def execute(self, run: Execution) -> Ending:
        """Carry the flow out; for a failure, `recover` chooses what is to be done."""
        ending = await self._go_through(run)
        return await self.recover(run, ending) if isinstance(ending, Failed) else ending

    def steps(self) -> tuple[Step, ...]:
        return (
            self.check,
            self.review,
            self.check_slots,
            self.invoke,
            self.results,
            self.repair,
            self.complete,
            self.verify,
        )

    async def _go_through(self, run: Execution) -> Ending:
        for step in self.steps():
            ending = await step(run)
            if ending is not None:
                return ending
        return Completed() if run.warning is None else Partial(run.warning)

    # The steps.

    async def check(self, run: Execution) -> Ending | None:
        return check(run)

    async def review(self, run: Execution) -> Ending | None:
        return await review(run)

    async def check_slots(self, run: Execution) -> Ending | None:
        return check_slots(run)

    async def invoke(self, run: Execution) -> Ending | None:
        return await invoke(run, self)

    async def results(self, run: Execution) -> Ending | None:
        await results(run, self)
        return None

    async def repair(self, run: Execution) -> Ending | None:
        return await repair(run, self.writer)

    async def complete(self, run: Execution) -> Ending | None:
        await complete(run, self)
        return None

    async def verify(self, run: Execution) -> Ending | None:
        verify(run)
        return None

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        return recover(run, self, failure)

    # The choices.

    def entities(self, run: Execution) -> Entities | None:
        """The tables, with their columns, that code may name; None leaves names unchecked."""
        return run.context.world.registry.tables or None

    def arguments(self, run: Execution, use: ToolUse, tool: Tool) -> Gathered:
        """The inputs of one tool call."""
        return gather_arguments(run, use, tool)

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        """Why a skill's result cannot be taken, in a sentence for the model; None when it can.

        `run.returned` has what the tools gave, to hold the result against.
        """
        del run, data
        return None

    def summary(self, run: Execution, arguments: JsonObject) -> JsonObject:
        """What the user is shown before a yes: the values of the template ``<dact>_confirm``."""
        return {**self.keep(run), **arguments}

    def keep(self, run: Execution) -> JsonObject:
        """What earlier tools found that is still needed after the user's yes: the short values."""
        return {name: value for name, value in run.data.items() if _is_short(value)}

    def label(self, run: Execution, row: JsonObject) -> str:
        """How one row is named when the user has to choose."""
        return ", ".join(str(value) for value in row.values() if _is_short(value))

    def frame(self, run: Execution) -> Frame:
        return make_frame(run)

    def outputs(self, run: Execution) -> JsonObject:
        """The declared outputs, from what the tools returned, else from slots of the same name."""
        found = {name: run.data.get(name, run.value(name)) for name in self.spec.outputs if _known(run, name)}
        return {name: value for name, value in found.items() if value is not None}

    def fallback(self, run: Execution, failure: Failed) -> Dact | None:
        """Where this failure always leads; bypasses the ladder (PX-16)."""
        return self.spec.fallback if failure.category is FailureCategory.NOT_FOUND else None

    def effect_summary(self, run: Execution, data: JsonObject) -> str:
        """What was done, as it goes on after "I have already": ``booked your flight (PX7K2M)``.

        The verb is the YAML's option `done`; without it the task is named.
        """
        done = self.spec.options.get("done") or f"done this: {run.flow.title}"
        references = [str(data[name]) for name in self.spec.outputs if isinstance(data.get(name), str)]
        return f"{done} ({references[0]})" if references else str(done)

    def summarise(self, run: Execution, tool: Tool, data: JsonObject) -> str:
        """What one call did; of several calls with effects each is named by its tool."""
        tools = (run.tools.find(use.tool_id) for use in self.spec.tools)
        if sum(other is not None and not other.spec.idempotent for other in tools) > 1:
            return f"done this: {tool.spec.name}"
        return self.effect_summary(run, data)

    def note_effect(self, run: Execution, tool: Tool, arguments: JsonObject, data: JsonObject) -> None:
        """Remember what was done with which values, so that a correction can name it (RT-12)."""
        keep_note(
            run.context,
            EffectNote(
                tool_id=tool.spec.tool_id,
                flow_id=run.flow.flow_id,
                slots=run.flow.values(),
                arguments=arguments,
                summary=self.summarise(run, tool, data),
                compensation=tool.spec.compensation,
                turn_id=run.context.ids.turn_id,
                result=_needed_to_undo(run, tool, data),
                fingerprint=make_effect(run.context, run.flow.flow_id, tool, arguments).fingerprint,
            ),
        )


def _known(run: Execution, name: str) -> bool:
    return name in run.data or name in run.flow.spec.slots


def _needed_to_undo(run: Execution, tool: Tool, data: JsonObject) -> JsonObject:
    """What a compensation can be called with, and judged by: the bounds above which it needs an approval."""
    undo = run.tools.find(tool.spec.compensation) if tool.spec.compensation is not None else None
    if undo is None:
        return {}
    wanted = {*undo.inputs, *undo.spec.approval_above}
    return {name: value for name, value in data.items() if name in wanted and _is_short(value)}


def _is_short(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= SHORT_TEXT
    return isinstance(value, (bool, int, float))
