"""Make a change of tables a step of the workspace: once per call, under a table's old name or a new one."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps

from domains.analytics.catalogue import TABLES
from domains.analytics.statements.formulas import check_name
from domains.analytics.statements.parts import Values, invalid
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import Made, Workspace
from domains.analytics.tools.display import show_sheet
from orchestrator import Json, JsonObject, Service, ToolCall

Tool = Callable[..., Awaitable[JsonObject]]


@dataclass(frozen=True, slots=True)
class Edit:
    """The statement of a change. `action`: what was done, for people. `name`: of a new table, if it makes one."""

    action: str
    sql: str
    values: Values = field(default_factory=Values)
    name: str | None = None


def once(change: Tool) -> Tool:
    """Hand a change its workspace; answer a repeated attempt of a call from the step that the first one added."""

    @wraps(change)
    async def attempt(self: Service, *, call: ToolCall, **inputs: Json) -> JsonObject:
        workspace = await Workspace.open(self.records, call)
        earlier = workspace.done_by(call.idempotency_key)
        if earlier is not None:
            return await describe_step(workspace, earlier)
        return await change(self, workspace, call=call, **inputs)

    _declare_inputs(attempt, change, without="workspace")
    return attempt


def edit(write: Callable[..., Edit]) -> Tool:
    """Make a tool of a function that writes a change of one table."""

    async def change(
        self: Service, workspace: Workspace, *, table: str, call: ToolCall, **inputs: Json
    ) -> JsonObject:
        del self
        sheet = workspace.sheet(table)
        return await commit(workspace, call, (sheet,), write(sheet, **inputs))

    tool = once(change)
    _declare_inputs(tool, write, without="sheet", more=inspect.signature(change))
    return tool


def _declare_inputs(
    tool: Tool, change: Callable[..., object], *, without: str, more: inspect.Signature | None = None
) -> None:
    """Let a tool's signature name the inputs that its change takes, by which the manifest is checked."""
    inputs = [one for name, one in inspect.signature(change).parameters.items() if name != without]
    if more is not None:
        named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in inputs]
        inputs = [more.parameters["self"], more.parameters["table"], more.parameters["call"], *named]
    tool.__signature__ = inspect.Signature(inputs)  # type: ignore[attr-defined]


async def commit(workspace: Workspace, call: ToolCall, inputs: tuple[Sheet, ...], change: Edit) -> JsonObject:
    """Carry out a change as a step.

    It makes a new version of the first input, or a new table. An older one of the user's own with that name
    is replaced, a base table never.
    """
    name = inputs[0].name if change.name is None else check_name(change.name)
    if change.name is not None and name in TABLES:
        raise invalid(f"{name} is one of the given tables; choose another name.")
    sheet = await workspace.make(name, change.sql, change.values.named, *(one.node for one in inputs))
    result: JsonObject = {"table": name, "action": change.action, "rows_before": inputs[0].rows}
    step = await workspace.add(call.idempotency_key, change.action, [Made(name, sheet)], result)
    return await describe_step(workspace, step)


async def describe_step(workspace: Workspace, step: JsonObject) -> JsonObject:
    """Describe what a step did, with the first page of its table if there is one."""
    name = step["result"]["table"]
    if name not in workspace.sheets:
        return {"names": workspace.own_names, "rows": [], "row_count": 0, **step["result"]}
    return {**await show_sheet(workspace, workspace.sheet(name)), **step["result"]}
