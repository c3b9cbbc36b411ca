"""How a change becomes a step of the workspace: once per call, under a table's old name or a new one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps

from domains.analytics.catalogue import TABLES
from domains.analytics.statements.formulas import check_name
from domains.analytics.statements.parts import Values
from domains.analytics.store.workspace import Made, Sheet, Workspace
from domains.analytics.tools.display import show_sheet
from orchestrator.domain.services import FailureCategory, Service, ToolCall, ToolFailure
from orchestrator.types import Json, JsonObject

Change = Callable[..., Awaitable[JsonObject]]


def once(change: Change) -> Change:
    """Answer a repeated attempt of a call from the step that the first one added."""

    @wraps(change)
    async def attempt(self: ChangingService, *, call: ToolCall, **inputs: Json) -> JsonObject:
        workspace = await Workspace.open(self.records, call)
        earlier = workspace.done_by(call.idempotency_key)
        if earlier is not None:
            return await self.told(workspace, earlier)
        return await change(self, call=call, **inputs)

    return attempt


class ChangingService(Service):
    """What all services that change tables share."""

    async def replace(self, call: ToolCall, table: str, sql: str, values: Values, action: str) -> JsonObject:
        """A new version of a table under its name."""
        workspace = await Workspace.open(self.records, call)
        return await self._commit(workspace, call, table, sql, values, (workspace.sheet(table),), action)

    async def remove(self, call: ToolCall, table: str, action: str) -> JsonObject:
        """Take a table away; undoing the step brings it back."""
        workspace = await Workspace.open(self.records, call)
        sheet = workspace.sheet(table)
        result: JsonObject = {"table": sheet.name, "action": action, "rows_before": sheet.rows}
        step = await workspace.add(call.idempotency_key, action, [Made(sheet.name, None)], result)
        return await self.told(workspace, step)

    async def create(
        self, call: ToolCall, name: str, sql: str, values: Values, inputs: Sequence[Sheet], action: str
    ) -> JsonObject:
        """A new table; an older one of the user's own with that name is replaced, a base table never."""
        workspace = await Workspace.open(self.records, call)
        name = check_name(name)
        if name in TABLES:
            message = f"{name} is one of the given tables; choose another name."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        return await self._commit(workspace, call, name, sql, values, inputs, action)

    async def _commit(
        self,
        workspace: Workspace,
        call: ToolCall,
        name: str,
        sql: str,
        values: Values,
        inputs: Sequence[Sheet],
        action: str,
    ) -> JsonObject:
        sheet = await workspace.make(name, sql, values.named, *(one.node for one in inputs))
        result: JsonObject = {"table": name, "action": action, "rows_before": inputs[0].rows}
        step = await workspace.add(call.idempotency_key, action, [Made(name, sheet)], result)
        return await self.told(workspace, step)

    async def told(self, workspace: Workspace, step: JsonObject) -> JsonObject:
        """What a step did, with the first page of its table if there is one."""
        name = step["result"]["table"]
        if name not in workspace.sheets:
            return {"names": workspace.own_names, "rows": [], "row_count": 0, **step["result"]}
        shown = await show_sheet(workspace, workspace.sheet(name))
        return {**shown, **step["result"]}
