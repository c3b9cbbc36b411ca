"""Answers what the steps ask of a policy: the choices that a domain most often makes its own (PX-1).

Among them is where a tool's inputs come from (PX-7): slots, then what earlier tools returned. One row is taken,
several are a choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.specification import FlowSpec, ToolUse
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Execution, Failed
from orchestrator.pex.frames import FrameWriter, make_frame
from orchestrator.pex.skill_outcome import SkillOutcome
from orchestrator.tools.guardrails.verdict import Entities
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject, is_list, is_object


@dataclass(frozen=True, slots=True)
class Arguments:
    values: JsonObject


@dataclass(frozen=True, slots=True)
class Choice:
    """Several rows could give the input `name`, which fills the slot `slot`."""

    name: str
    slot: str
    rows: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class NothingFound:
    """Earlier tools returned no row that could give the input."""

    name: str


@dataclass(frozen=True, slots=True)
class Unfed:
    """Nothing in the flow could ever give the input: its type is not complete."""

    name: str


Gathered: TypeAlias = Arguments | Choice | NothingFound | Unfed


def gather_arguments(run: Execution, use: ToolUse, tool: Tool) -> Gathered:
    """Gather the inputs of one call; what is required and not there is looked for among rows."""
    known, arguments = run.flow.values(), Arguments({})
    slots, data, mapping = run.flow.spec.slots, run.data, use.slot_mapping
    for name in tool.inputs:
        slot = mapping.get(name, name)
        value = known.get(slot) if slot in slots else None
        if value is None:
            value = data.get(name)
        if value is None and name in tool.required:
            rows = _find_rows(run.data, name)
            if rows is None:
                return Unfed(name)
            if not rows:
                return NothingFound(name)
            if len(rows) > 1 and slot in run.flow.spec.slots:
                return Choice(name, slot, tuple(rows))
            value = rows[0][name]
        if value is not None:
            arguments.values[name] = value
    return arguments


def _find_rows(data: JsonObject, name: str) -> list[JsonObject] | None:
    """Find the first list of rows that have `name`; empty when only empty lists are there; else None."""
    empty = False
    for value in data.values():
        if not is_list(value):
            continue
        if not value:
            empty = True
        elif is_object(value[0]) and name in value[0]:
            return value
    return [] if empty else None


SHORT_TEXT = 200  # longer texts of an earlier tool are not kept with a candidate


class Skills(Protocol):
    """Runs skills; made in `skills`, for the whole domain."""

    def can_run(self, dact: Dact) -> bool:
        """Say whether the domain has a skill for this flow, and a model can be asked."""
        ...

    async def run(self, run: Execution, policy: Choices) -> SkillOutcome:
        """Carry the flow out."""
        ...


class Choices:
    """`skills` runs the flow's skill, and `writer` chooses other forms for frames, where models can be asked."""

    most_choices = 5
    """How many rows are offered when the user has to choose one."""

    skills: Skills | None = None
    writer: FrameWriter | None = None

    def __init__(self, spec: FlowSpec) -> None:
        self.spec = spec

    def entities(self, run: Execution) -> Entities | None:
        """Name the tables, with their columns, that code may use; None leaves names unchecked."""
        return run.context.world.registry.tables or None

    def arguments(self, run: Execution, use: ToolUse, tool: Tool) -> Gathered:
        """Gather the inputs of one tool call."""
        return gather_arguments(run, use, tool)

    def knowledge(self, run: Execution) -> JsonObject:
        """Tell a skill what it should know beforehand, such as the tables that it may read."""
        del run
        return {}

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        """Say why a skill's result cannot be taken, in a sentence for the model; None when it can.

        `run.returned` has what the tools gave, to hold the result against.
        """
        del run, data
        return None

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        """Say why a beginning of a skill's text, up to the end of a word, may not be told while it is written."""
        del run, text
        return None

    def summary(self, run: Execution, arguments: JsonObject) -> JsonObject:
        """Give the values of the template ``<dact>_confirm``, which is shown before a yes."""
        return {**self.keep(run), **arguments}

    def keep(self, run: Execution) -> JsonObject:
        """Keep what earlier tools found that is still needed after the user's yes: the short values."""
        return {
            name: value
            for name, value in run.data.items()
            if (len(value) <= SHORT_TEXT if type(value) is str else isinstance(value, (bool, int, float)))
        }

    def label(self, run: Execution, row: JsonObject) -> str:
        """Name one row when the user has to choose."""
        del run
        return ", ".join(str(value) for value in row.values() if is_short(value))

    def frame(self, run: Execution) -> Frame:
        return make_frame(run)

    def outputs(self, run: Execution) -> JsonObject:
        """Give the declared outputs, from what the tools returned, else from slots of the same name."""
        found = {name: run.data[name] if name in run.data else run.value(name) for name in self.spec.outputs}
        return {name: value for name, value in found.items() if value is not None}

    def fallback(self, run: Execution, failure: Failed) -> Dact | None:
        """Name the flow to which this failure always leads; it bypasses the ladder (PX-16)."""
        del run
        return self.spec.fallback if failure.category is FailureCategory.NOT_FOUND else None

    def effect_summary(self, run: Execution, data: JsonObject) -> str:
        """Say what was done, as it goes on after "I have already": ``booked your flight (PX7K2M)``.

        The verb is the YAML's option `done`; without it the task is named.
        """
        done = self.spec.options.get("done") or f"done this: {run.flow.title}"
        references = [str(data[name]) for name in self.spec.outputs if isinstance(data.get(name), str)]
        return f"{done} ({references[0]})" if references else str(done)


def is_short(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= SHORT_TEXT
    return isinstance(value, (bool, int, float))
