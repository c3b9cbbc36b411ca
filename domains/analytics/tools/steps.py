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
from domains.analytics.store.workspace import Made, TableService, Workspace
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

    # The signature names the inputs that a call takes, by which the manifest is checked.
    signature = inspect.signature(change)
    inputs = [one for name, one in signature.parameters.items() if name != "workspace"]
    attempt.__signature__ = signature.replace(parameters=inputs)  # type: ignore[attr-defined]
    return attempt


def edit(write: Callable[..., Edit]) -> Tool:
    """Make a tool of a method that writes a change of one table."""

    async def change(
        self: Service, workspace: Workspace, *, table: str, call: ToolCall, **inputs: Json
    ) -> JsonObject:
        sheet = workspace.sheet(table)
        return await commit(workspace, call, (sheet,), write(self, sheet, **inputs))

    own = inspect.signature(change).parameters
    inputs = [
        one for name, one in inspect.signature(write).parameters.items() if name not in {"self", "sheet"}
    ]
    fixed = [own[name] for name in ("self", "workspace", "table", "call")]
    change.__signature__ = inspect.Signature([*fixed, *inputs])  # type: ignore[attr-defined]
    return once(wraps(write)(change))


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


class Steps(TableService):
    """Looks back at the steps that changed tables, and takes the last one back."""

    async def outcome(self, *, idempotency_key: str, call: ToolCall) -> JsonObject:
        """Look up what became of a call that changes tables: done, or not done as far as anyone will see."""
        workspace = await Workspace.open(self.records, call)
        step = workspace.done_by(idempotency_key)
        if step is None:
            return {"status": "not_done"}
        return {"status": "done", "data": await describe_step(workspace, step)}

    async def undo(self, *, call: ToolCall, step: int | None = None) -> JsonObject:
        undone = await (await Workspace.open(self.records, call)).undo(call.idempotency_key, step)
        left = await Workspace.open(self.records, call)
        table = next((one["name"] for one in undone["makes"] if one["name"] in left.sheets), "")
        rows = left.sheets[table].rows if table else 0
        return {"action": undone["action"], "names": left.own_names, "table": table, "row_count": rows}

    async def history(self, *, call: ToolCall) -> JsonObject:
        """List the steps in force, the latest first."""
        workspace = await Workspace.open(self.records, call)
        steps = [step for step in reversed(workspace.steps) if not step["undone_by"]]
        rows: list[JsonObject] = [{"step": one["number"], "action": one["action"]} for one in steps]
        return {"rows": rows, "row_count": len(rows), "names": workspace.own_names}
