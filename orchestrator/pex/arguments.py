"""Gathers a tool's inputs in direct mode (PX-7): from slots, then from what earlier tools returned.

An earlier tool that returned rows offers each row's values; one row is taken, several are a choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.dialogue.specification import ToolUse
from orchestrator.pex.execution import Execution
from orchestrator.tools.toolbox import Tool
from orchestrator.types import JsonObject


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
    for name in tool.inputs:
        slot = use.slot_mapping.get(name, name)
        value = known.get(slot) if slot in run.flow.spec.slots else None
        if value is None:
            value = run.data.get(name)
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
