"""Where a tool's inputs come from in direct mode (PX-7): slots, then what earlier tools returned.

An earlier tool that returned rows offers each row's values; one row is taken, several are a choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.dialogue.specification import ToolUse
from orchestrator.pex.execution import Execution
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Json, JsonObject


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
    values: JsonObject = {}
    for name in tool.inputs:
        slot = use.slot_mapping.get(name, name)
        value = run.value(slot) if slot in run.flow.spec.slots else None
        if value is None:
            value = run.data.get(name)
        if value is None and name in tool.required:
            found = _from_rows(run, name, slot)
            if not isinstance(found, _Value):
                return found
            value = found.value
        if value is not None:
            values[name] = value
    return Arguments(values)


@dataclass(frozen=True, slots=True)
class _Value:
    value: Json


def _from_rows(run: Execution, name: str, slot: str) -> _Value | Choice | NothingFound | Unfed:
    """Look for the input among the rows that earlier tools returned."""
    rows = find_rows(run.data, name)
    if rows is None:
        return Unfed(name)
    if not rows:
        return NothingFound(name)
    if len(rows) == 1 or slot not in run.flow.spec.slots:
        return _Value(rows[0][name])
    return Choice(name, slot, tuple(rows))


def find_rows(data: JsonObject, name: str) -> list[JsonObject] | None:
    """The first list of rows that have `name`; an empty list when only empty lists are there; else None."""
    empty = False
    for value in data.values():
        if not is_list(value):
            continue
        if not value:
            empty = True
        elif is_object(value[0]) and name in value[0]:
            return value
    return [] if empty else None
