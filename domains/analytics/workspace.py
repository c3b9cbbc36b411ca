"""The workspace of a user, or of a session without a user: base tables, saved tables and displayed results.

Saved tables and results are stored as SELECT statements over base tables only. Therefore, dropping a saved table
never invalidates another table.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from difflib import get_close_matches

import sqlglot
from sqlglot import exp

from domains.analytics.catalogue import TABLES, Column
from domains.analytics.engine import Rows, engine, invalid, not_found, quote
from parley import Json, JsonObject, Records, Service, ToolCall

SAVED, RESULTS = "tables", "results"
MOST_SAVED = 100
PAGE_ROWS = 512
LONGEST_STATEMENT = 20_000
_NAME = re.compile(r"[a-z]\w{0,59}")
_GIVEN = {"_".join(name.split()) for table in TABLES.values() for name in (table.name, *table.aliases)}


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table or a displayed result.

    `sql`: a SELECT statement over base tables. `code`: the statement that the user sees, which can read saved tables.
    """

    name: str
    sql: str
    columns: tuple[Column, ...]
    rows: int
    code: str = ""
    table_id: str = ""

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def has(self, *names: str | None) -> bool:
        """Return True if the table has all named columns. Names that are None are ignored."""
        return all(name is None or name in self.names for name in names)

    def column(self, name: str) -> Column:
        """Return the column with this name.

        Raises:
            ToolFailure: not_found, with a hint from `suggest`.
        """
        found = next((one for one in self.columns if one.name == name), None)
        if found is None:
            raise not_found(f"The table {self.name} has no column {name!r}." + suggest(name, self.names))
        return found

    def number(self, name: str) -> Column:
        """Return the numeric column with this name.

        Raises:
            ToolFailure: not_found, or validation_error if the column isn't numeric.
        """
        found = self.column(name)
        if not found.is_number:
            raise invalid(f"{found.name} is not a numeric column.")
        return found


class Workspace:
    """The tables of a user or session: base tables and saved tables.

    `owner`: the result of `owner_of`. `sheets`: the tables by name.
    """

    def __init__(self, records: Records, owner: str, saved: list[JsonObject]) -> None:
        self.records = records
        self.owner = owner
        self.sheets = {
            table.name: Sheet(table.name, f"SELECT * FROM {quote(table.name)}", table.columns, table.rows)  # noqa: S608
            for table in TABLES.values()
        }
        self.sheets |= {one["name"]: _read_sheet(one) for one in saved}

    @classmethod
    async def open(cls, records: Records, call: ToolCall) -> Workspace:
        """Open the user's workspace, or the session's workspace if there is no user."""
        owner = owner_of(call)
        saved = await records.find(SAVED, {"owner": owner, "status": "kept"}, limit=MOST_SAVED)
        return cls(records, owner, saved)

    @property
    def saved(self) -> list[Sheet]:
        return [sheet for sheet in self.sheets.values() if sheet.name not in TABLES]

    def sheet(self, name: str) -> Sheet:
        """Return the table with this name.

        Raises:
            ToolFailure: not_found, with the most similar name if any name is similar.
        """
        found = self.sheets.get("_".join(name.casefold().split()))
        if found is None:
            raise not_found(f"There's no table {name!r}." + suggest(name, list(self.sheets), others=False))
        return found

    async def result(self, table_id: str) -> Sheet:
        """Return a stored result.

        Raises:
            ToolFailure: not_found if this workspace has no result with this ID.
        """
        body = await self.records.get(RESULTS, table_id)
        if body is None or body["owner"] != self.owner:
            raise not_found("There's no such table.")
        return _read_sheet(body)

    async def read(self, sql: str) -> Rows:
        return await asyncio.to_thread(engine().run, sql)

    async def show(self, name: str, sql: str, code: str = "") -> tuple[Sheet, list[JsonObject]]:
        """Run a statement over base tables and store it as a result. Return the result and its first page of rows.

        `name`: the table that the result comes from. `code`: the statement to display. Default: `sql`.
        """
        if len(sql) > LONGEST_STATEMENT:
            raise invalid("That statement builds on too many saved tables.")
        found = await self.read(f"SELECT * FROM ({sql}) LIMIT {PAGE_ROWS + 1}")  # noqa: S608
        rows = len(found.rows)
        if rows > PAGE_ROWS:
            rows = int(str((await self.read(f"SELECT count(*) FROM ({sql})")).rows[0][0]))  # noqa: S608
        table_id = hashlib.blake2b(f"{self.owner}\0{sql}".encode(), digest_size=12).hexdigest()
        sheet = Sheet(name, sql, found.columns, rows, code or sql, table_id)
        await self.records.create(RESULTS, table_id, write_sheet(self.owner, sheet))
        return sheet, found.to_objects()[:PAGE_ROWS]

    def expand(self, statement: str) -> tuple[str, str]:
        """Add the definitions of saved tables to a statement, so that it reads only base tables.

        Return the first known table that the original statement reads, and the new statement.

        Raises:
            ToolFailure: validation_error if the statement reads no known table.
        """
        named = [
            table.name.lower() for table in sqlglot.parse_one(statement, read="duckdb").find_all(exp.Table)
        ]
        sheets = [self.sheets[name] for name in dict.fromkeys(named) if name in self.sheets]
        if not sheets:
            raise invalid(f"Read from a table. Available: {', '.join(self.sheets)}.")
        saved = ", ".join(f"{quote(one.name)} AS ({one.sql})" for one in sheets if one.name not in TABLES)
        return sheets[0].name, f"WITH {saved} SELECT * FROM ({statement})" if saved else statement  # noqa: S608

    def about(self, sheet: Sheet) -> JsonObject:
        """Return the table's name, and the names that later turns must recognize (see `names_with`)."""
        return {"table": sheet.name, "names": self.names_with(sheet)}

    def names_with(self, *sheets: Sheet) -> JsonObject:
        """Return the saved tables, and the columns in saved tables and `sheets` that no base table has."""
        known = {column.name for table in TABLES.values() for column in table.columns}
        columns = {name for one in (*self.saved, *sheets) for name in one.names}
        return {
            "table": {one.name: {"columns": one.names, "rows": one.rows} for one in self.saved},
            "column": {name: {} for name in sorted(columns - known)},
        }


class TableService(Service):
    async def open(
        self, call: ToolCall, table: str | None, table_id: str | None = None
    ) -> tuple[Workspace, Sheet]:
        """Return the caller's workspace with the result `table_id` or, if that is None, the table `table`."""
        workspace = await Workspace.open(self.records, call)
        if table_id is not None:
            return workspace, await workspace.result(table_id)
        if table is None:
            raise invalid("Name a table.")
        return workspace, workspace.sheet(table)


def owner_of(call: ToolCall) -> str:
    return f"user:{call.user_id}" if call.user_id else f"session:{call.home}"


def check_name(said: str) -> str:
    """Convert the user's words to a table name. Raises ToolFailure if the name is invalid or that of a base table."""
    name = "_".join(re.sub(r"\W+", " ", said.casefold()).split())
    if _NAME.fullmatch(name) is None:
        raise invalid(f"{said!r} is not a valid name: use letters, digits and _, starting with a letter.")
    if name in _GIVEN:
        raise invalid(f"{name} is a built-in table; choose another name.")
    return name


def suggest(said: str, names: list[str], *, others: bool = True) -> str:
    """Return a hint with the name closest to `said`. If no name is close and `others` is True, list up to 12 names."""
    if near := get_close_matches(said.casefold(), names, 1):
        return f" Did you mean {near[0]}?"
    return f" Available: {', '.join(names[:12])}." if names and others else ""


def write_sheet(owner: str, sheet: Sheet) -> JsonObject:
    columns: Json = [[column.name, column.type] for column in sheet.columns]
    body: JsonObject = {"owner": owner, "name": sheet.name, "sql": sheet.sql, "columns": columns}
    return {**body, "rows": sheet.rows, "code": sheet.code, "table_id": sheet.table_id}


def _read_sheet(body: JsonObject) -> Sheet:
    columns = tuple(Column(name, kind) for name, kind in body["columns"])
    return Sheet(body["name"], body["sql"], columns, body["rows"], body["code"], body["table_id"])
