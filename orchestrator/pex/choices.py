"""The choices that domains override most often, with their defaults (PX-1).

By default, a tool's inputs come from slots, then from the results of earlier tools (PX-7). If several rows
provide an input for a slot, the user chooses a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.dialogue.questions import ChooseRow, Option
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.specification import FlowSpec, ToolUse
from orchestrator.errors import FailureCategory
from orchestrator.models.engineer import PromptEngineer
from orchestrator.pex.execution import Execution, Failed, NeedsInput
from orchestrator.pex.frames import make_frame
from orchestrator.pex.skill_outcome import SkillOutcome
from orchestrator.saying import Told, say
from orchestrator.tools.guardrails.verdict import Entities
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject, is_list, is_object


def _find_rows(data: JsonObject, name: str) -> list[JsonObject] | None:
    """Return the first list whose rows have the field `name`.

    If no list has it, return an empty list if one of the results is an empty list; otherwise, None.
    """
    empty = False
    for value in data.values():
        if not is_list(value):
            continue
        if not value:
            empty = True
        elif is_object(value[0]) and name in value[0]:
            return value
    return [] if empty else None


SHORT_TEXT = 200  # characters; longer results of earlier tools are not stored with a pending call


class Skills(Protocol):
    def can_run(self, dact: Dact) -> bool:
        """Return whether the domain has a skill for this flow and a model is available."""
        ...

    async def run(self, run: Execution, policy: Choices) -> SkillOutcome: ...


class Choices:
    """The parts of a policy that a domain can override."""

    most_choices = 5
    """Maximum number of rows offered in a choice."""

    skills: Skills | None = None
    engineer: PromptEngineer | None = None
    """Asks a model to repair frames and queries, or None."""

    def __init__(self, spec: FlowSpec) -> None:
        self.spec = spec

    def entities(self, run: Execution) -> Entities | None:
        """Return the tables and columns that code can use, or None to skip checking their names."""
        return run.context.world.registry.tables or None

    def arguments(self, run: Execution, use: ToolUse, tool: Tool) -> JsonObject | NeedsInput | Failed:
        """Return the inputs for one call, or the ending if a required input is missing.

        Only required inputs come from the rows in earlier results. If several rows could provide an input for a
        slot, ask the user to choose one.
        """
        known, arguments = run.flow.values(), JsonObject()
        slots, data, mapping = run.flow.spec.slots, run.data, use.slot_mapping
        for name in tool.inputs:
            slot = mapping.get(name, name)
            value = known.get(slot) if slot in slots else None
            if value is None:
                value = data.get(name)
            if value is None and name in tool.required:
                rows = _find_rows(data, name)
                if rows is None:  # a fault in the domain
                    why = f"No source provides the input {name!r}."
                    run.context.log.failed_check("pex", "arguments", why, run.flow.flow_id)
                    return Failed(FailureCategory.VALIDATION_ERROR, say("input_missing"))
                if not rows:
                    return Failed(FailureCategory.NOT_FOUND, say("nothing_matches"))
                if len(rows) > 1 and slot in slots:
                    return self._ask_to_choose(run, name, slot, rows)
                value = rows[0][name]
            if value is not None:
                arguments[name] = value
        return arguments

    def _ask_to_choose(self, run: Execution, name: str, slot: str, rows: Sequence[JsonObject]) -> NeedsInput:
        """Ask the user to choose one of up to `most_choices` rows for the slot (partial ambiguity)."""
        about: JsonObject = {"flow_id": run.flow.flow_id, "slot": slot}
        options = tuple(
            Option(self.label(run, row), "fill_slot", {**about, "value": row[name]})
            for row in rows[: self.most_choices]
        )
        run.context.changes.findings[run.flow.flow_id] = run.data
        question = ChooseRow(flow_id=run.flow.flow_id, slot=slot, options=options)
        run.context.state.ambiguity.declare(question)
        return NeedsInput()

    def knowledge(self, run: Execution) -> JsonObject:
        """Return facts for the skill's prompt, such as the tables that can be read."""
        del run
        return {}

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        """Return why a skill's result is unusable, as a sentence for the model, or None.

        `run.returned`: the tools' results, for comparison.
        """
        del run, data
        return None

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        """Return why a skill's partial text must not be streamed, or None. `text`: ends at a word boundary."""
        del run, text
        return None

    def summary(self, run: Execution, arguments: JsonObject) -> JsonObject:
        """Return the variables for the template ``<dact>.confirm``, which asks for confirmation."""
        return {**self.keep(run), **arguments}

    def keep(self, run: Execution) -> JsonObject:
        """Return the short results of earlier tools, which are needed after the confirmation."""
        return {name: value for name, value in run.data.items() if is_short(value)}

    def label(self, run: Execution, row: JsonObject) -> str:
        """Return a row's label in a choice."""
        del run
        return ", ".join(str(value) for value in row.values() if is_short(value))

    def frame(self, run: Execution) -> Frame:
        return make_frame(run)

    def outputs(self, run: Execution) -> JsonObject:
        """Return the flow's declared outputs, from tool results or from slots with the same names."""
        found = {name: run.data[name] if name in run.data else run.value(name) for name in self.spec.outputs}
        return {name: value for name, value in found.items() if value is not None}

    def fallback(self, run: Execution, failure: Failed) -> Dact | None:
        """Return the flow that handles this failure instead of the recovery ladder, or None (PX-16).

        Default: the flow's `fallback` if a tool found nothing.
        """
        del run
        return self.spec.fallback if failure.category is FailureCategory.NOT_FOUND else None

    def effect_summary(self, run: Execution, data: JsonObject) -> Told:
        """Return the phrase that completes "I have already", such as ``booked your flight (PX7K2M)``.

        A flow can set the phrase with its option `done`.
        """
        done = self.spec.options.get("done")
        references = [str(data[name]) for name in self.spec.outputs if isinstance(data.get(name), str)]
        reference = references[0] if references else ""
        if done is None:
            return say("done_this", what=run.flow.title, reference=reference)
        return f"{done} ({reference})" if reference else str(done)


def is_short(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= SHORT_TEXT
    return isinstance(value, (bool, int, float))
