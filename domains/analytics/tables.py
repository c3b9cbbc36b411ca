from __future__ import annotations

from domains.analytics.catalogue import TABLES
from domains.analytics.display import describe_rows, describe_sheet
from domains.analytics.engine import invalid, not_found
from domains.analytics.workspace import (
    MOST_SAVED,
    PAGE_ROWS,
    SAVED,
    TableService,
    Workspace,
    check_name,
    owner_of,
    write_sheet,
)
from parley import JsonObject, ToolCall

MOST_COMPUTED = 2000
"""Maximum number of rows that `compute` passes to Python."""


class Tables(TableService):
    async def list(self, *, call: ToolCall) -> JsonObject:
        workspace = await Workspace.open(self.records, call)
        rows: list[JsonObject] = [
            {
                "table": sheet.name,
                "rows": sheet.rows,
                "columns": len(sheet.columns),
                "about": TABLES[sheet.name].title if sheet.name in TABLES else "saved by you",
            }
            for sheet in workspace.sheets.values()
        ]
        return {"tables": rows, "count": len(rows), "names": workspace.names_with()}

    async def describe(self, *, table: str, call: ToolCall) -> JsonObject:
        workspace, sheet = await self.open(call, table)
        title = TABLES[sheet.name].title if sheet.name in TABLES else ""
        fields: list[JsonObject] = [{"column": one.name, "type": one.kind} for one in sheet.columns]
        shown, rows = await workspace.show(sheet.name, sheet.sql)
        return {**workspace.about(shown), **describe_sheet(shown, rows), "fields": fields, "title": title}

    async def page(self, table_id: str, number: int, call: ToolCall) -> JsonObject:
        """Return one page of a result as ``{rows, page, pages, row_count}``. `number`: the page, from 1."""
        workspace, sheet = await self.open(call, None, table_id)
        pages = max(1, -(-sheet.rows // PAGE_ROWS))
        if not 1 <= number <= pages:
            raise not_found(f"There are {pages} pages; there's no page {number}.")
        sql = f"SELECT * FROM ({sheet.sql}) LIMIT {PAGE_ROWS} OFFSET {(number - 1) * PAGE_ROWS}"  # noqa: S608
        rows = (await workspace.read(sql)).to_objects()
        return {"rows": rows, "page": number, "pages": pages, "row_count": sheet.rows}

    async def run_sql(self, *, statement: str, call: ToolCall) -> JsonObject:
        """Run a SELECT statement that has passed the guardrails (PX-10).

        Raises:
            ToolFailure: validation_error with the database's message, or if the statement reads no known table.
        """
        workspace = await Workspace.open(self.records, call)
        name, sql = workspace.expand(statement)
        sheet, rows = await workspace.show(name, sql, statement)
        return {**workspace.about(sheet), **describe_sheet(sheet, rows)}

    async def compute(self, *, statement: str, code: str, call: ToolCall) -> JsonObject:
        """Run a Python function on the rows of a SELECT statement. Both have passed the guardrails.

        `code`: defines one function with the parameter `rows`, a list of objects. The function returns a list of
        objects, an object or a plain value.

        Raises:
            ToolFailure: validation_error if the statement or the function fails, or if there are more than
                `MOST_COMPUTED` rows.
        """
        if self.python is None:
            raise invalid("Python can't run here.")
        workspace = await Workspace.open(self.records, call)
        name, sql = workspace.expand(statement)
        found = await workspace.read(f"SELECT * FROM ({sql}) LIMIT {MOST_COMPUTED + 1}")  # noqa: S608
        if len(found.rows) > MOST_COMPUTED:
            raise invalid(
                f"At most {MOST_COMPUTED:,} rows go into Python: filter or group them in the statement."
            )
        computed = await self.python.run(code, {"rows": found.to_objects()})
        rows = computed if isinstance(computed, list) else [computed]
        rows = [row if isinstance(row, dict) else {"result": row} for row in rows]
        names = [*dict.fromkeys(name for row in rows for name in row)]
        shown = [{name: row.get(name) for name in names} for row in rows[:PAGE_ROWS]]
        about = workspace.about(workspace.sheet(name))
        return {**about, **describe_rows(names, shown, len(rows)), "code": code}

    async def save(
        self, *, new_name: str, call: ToolCall, table: str | None = None, table_id: str | None = None
    ) -> JsonObject:
        """Save the result `table_id` or, if that is None, the table `table` under a new name.

        Raises:
            ToolFailure: validation_error if the name is taken or the workspace is full.
        """
        workspace, sheet = await self.open(call, table, table_id)
        name, place = check_name(new_name), f"{workspace.owner}:{check_name(new_name)}"
        if len(workspace.saved) >= MOST_SAVED:
            raise invalid(f"You already have {MOST_SAVED} saved tables; please drop one first.")
        mine: JsonObject = {"name": name, "status": "kept", "key": call.idempotency_key}
        body = {**write_sheet(workspace.owner, sheet), **mine}
        stored = await self.records.create(SAVED, place, body)
        if stored["status"] == "dropped":
            stored = await self.records.update(SAVED, place, body, where={"status": "dropped"})
        if stored is None or stored["key"] != call.idempotency_key:
            raise invalid(f"There's already a table {name}; choose another name.")
        return await self._describe_saved(call, name)

    async def outcome(self, *, idempotency_key: str, call: ToolCall) -> JsonObject:
        """Return whether the call to `save` or `drop` with this key took effect, and its result."""
        found = await self.records.find(SAVED, {"owner": owner_of(call), "key": idempotency_key}, limit=1)
        if not found:
            return {"status": "not_done"}
        name = found[0]["name"]
        dropped = found[0]["status"] == "dropped"
        return {
            "status": "done",
            "data": await (self._describe_dropped if dropped else self._describe_saved)(call, name),
        }

    async def drop(self, *, table: str, call: ToolCall) -> JsonObject:
        """Drop a saved table. Idempotent."""
        if table in TABLES:
            raise invalid(f"{table} is a built-in table; only saved tables can be dropped.")
        place = f"{owner_of(call)}:{table}"
        dropped: JsonObject = {"status": "dropped", "key": call.idempotency_key}
        changed = await self.records.update(SAVED, place, dropped, where={"status": "kept"})
        if changed is None:
            earlier = await self.records.get(SAVED, place)
            if earlier is None or earlier["key"] != call.idempotency_key:
                raise not_found(f"There's no table {table!r}.")
        return await self._describe_dropped(call, table)

    async def _describe_dropped(self, call: ToolCall, name: str) -> JsonObject:
        workspace = await Workspace.open(self.records, call)
        return {"dropped": name, "names": workspace.names_with()}

    async def _describe_saved(self, call: ToolCall, name: str) -> JsonObject:
        workspace, sheet = await self.open(call, name)
        shown, rows = await workspace.show(name, sheet.sql, sheet.code)
        return {**workspace.about(shown), **describe_sheet(shown, rows)}
