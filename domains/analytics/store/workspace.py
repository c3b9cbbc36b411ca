"""Keep what somebody has made of the tables: a log of steps, each with recipes, in the domain's records.

A step is added once per call however often it is tried. Tables themselves are made by the engine, in
whichever process needs them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from domains.analytics.catalogue import TABLES
from domains.analytics.statements.parts import Column, invalid, not_found
from domains.analytics.store.engine import Recipe, Rows, engine
from domains.analytics.store.sheet import BASE, Sheet, base_sheets, fold, suggest
from orchestrator import FailureCategory, Json, JsonObject, Records, Service, ToolCall, ToolFailure

STEPS, RECIPES = "steps", "recipes"
MOST_STEPS = 500
MOST_ATTEMPTS = 20
PAGE_ROWS = 512
MOST_TOLD = 100
_CACHED_RECIPES = 10_000
_recipes: dict[str, Recipe] = {}
"""Recipes never change: what was read once need not be read again."""


@dataclass(frozen=True, slots=True)
class Made:
    """One table that a step makes, or (without a sheet) removes."""

    name: str
    sheet: Sheet | None


class Workspace:
    """The tables of one owner as they are at one moment."""

    def __init__(self, records: Records, owner: str, steps: Sequence[JsonObject]) -> None:
        self.records = records
        self.owner = owner
        self.steps = list(steps)
        self.sheets = base_sheets()
        for step in self.steps:
            if not step["undone_by"]:
                self._apply(step)

    @classmethod
    async def open(cls, records: Records, call: ToolCall) -> Workspace:
        """Open the workspace of the user, or of the session when nobody is known."""
        owner = owner_of(call)
        return cls(records, owner, await records.find(STEPS, {"owner": owner}, limit=MOST_STEPS + 1))

    def _apply(self, step: JsonObject) -> None:
        for made in step["makes"]:
            if made["node"] is None:
                self.sheets.pop(made["name"], None)
                continue
            columns = tuple(Column(name, kind) for name, kind in made["columns"])
            self.sheets[made["name"]] = Sheet(made["name"], made["node"], columns, made["rows"])

    def sheet(self, said: str) -> Sheet:
        """Find the table of that name.

        Raises:
            ToolFailure: not_found, naming the nearest table.
        """
        found = self.sheets.get(fold(said))
        if found is None:
            raise not_found(f"There is no table {said!r}." + suggest(said, self.sheets, others=False))
        return found

    @property
    def own_names(self) -> JsonObject:
        """The tables that were made or changed, with their columns, and columns that no catalogue knows."""
        known = {column.name for table in TABLES.values() for column in table.columns}
        own = sorted((name, sheet) for name, sheet in self.sheets.items() if not sheet.node.startswith(BASE))
        columns = {column.name for _, sheet in own for column in sheet.columns}
        return {
            "table": {
                name: {"columns": list(sheet.names), "rows": sheet.rows} for name, sheet in own[:MOST_TOLD]
            },
            "column": {name: {} for name in sorted(columns - known)[:MOST_TOLD]},
        }

    def done_by(self, key: str) -> JsonObject | None:
        """Find the step that an earlier attempt of the same call made."""
        return next((step for step in self.steps if step["key"] == key), None)

    @property
    def last(self) -> JsonObject | None:
        """The latest step that is in force."""
        return next((step for step in reversed(self.steps) if not step["undone_by"]), None)

    async def read(self, sql: str, values: Mapping[str, Json], *sheets: Sheet) -> Rows:
        """Ask a question of tables; in a thread, for it may take a while."""
        nodes = [sheet.node for sheet in sheets]
        recipes = await self._recipes_of(nodes)
        return await asyncio.to_thread(engine().run, sql, values, nodes, recipes)

    async def number(self, sql: str, values: Mapping[str, Json], *sheets: Sheet) -> int:
        """Ask a question whose answer is one whole number."""
        return int(str((await self.read(sql, values, *sheets)).rows[0][0]))

    async def make(self, name: str, sql: str, values: Mapping[str, Json], *inputs: str) -> Sheet:
        """Make a table by its recipe, which is kept; it is a name only, until a step is added."""
        node = self._node_of(sql, values, inputs)
        recipe = Recipe(node, sql, dict(values), inputs)
        recipes = {**await self._recipes_of(inputs), node: recipe}
        kept = await asyncio.to_thread(engine().make, node, recipes)
        body: JsonObject = {
            "owner": self.owner,
            "sql": sql,
            "values": dict(values),
            "inputs": list(inputs),
            "columns": [[column.name, column.type] for column in kept.columns],
            "rows": kept.rows,
        }
        await self.records.create(RECIPES, node, body)
        _remember(recipe)
        return Sheet(name, node, kept.columns, kept.rows)

    def _node_of(self, sql: str, values: Mapping[str, Json], inputs: Sequence[str]) -> str:
        """Name a table by its content; owners do not share nodes, so that nobody learns of another's."""
        body = orjson.dumps([self.owner, sql, dict(values), list(inputs)], option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(body, digest_size=16).hexdigest()

    async def _recipes_of(self, nodes: Iterable[str]) -> dict[str, Recipe]:
        """Gather the recipes of nodes and of everything that they are made from."""
        found: dict[str, Recipe] = {}
        open_nodes = [node for node in nodes if not node.startswith(BASE)]
        while open_nodes:
            node = open_nodes.pop()
            if node not in found:
                found[node] = await self._recipe(node)
                open_nodes += [one for one in found[node].inputs if not one.startswith(BASE)]
        return found

    async def _recipe(self, node: str) -> Recipe:
        if node not in _recipes:
            body = await self.records.get(RECIPES, node)
            if body is None or body["owner"] != self.owner:
                raise not_found("That table is no longer kept.")
            _remember(Recipe(node, body["sql"], body["values"], tuple(body["inputs"])))
        return _recipes[node]

    async def add(self, key: str, action: str, made: Sequence[Made], result: JsonObject) -> JsonObject:
        """Add a step; the one of an earlier attempt of the same call if there was one.

        Raises:
            ToolFailure: validation_error when the workspace is full, server_error when others were faster.
        """
        for _ in range(MOST_ATTEMPTS):
            earlier = self.done_by(key)
            if earlier is not None:
                return earlier
            number = len(self.steps) + 1
            if number > MOST_STEPS:
                raise invalid(f"A workspace has at most {MOST_STEPS} steps, and this one is full.")
            step: JsonObject = {
                "owner": self.owner,
                "number": number,
                "key": key,
                "action": action,
                "makes": [_describe(one) for one in made],
                "result": {**result, "step": number},
                "undone_by": "",
            }
            stored = await self.records.create(STEPS, f"{self.owner}:{number:06d}", step)
            self.steps.append(stored)
            self._apply(stored)
            if stored["key"] == key:
                return stored
        raise ToolFailure(
            FailureCategory.SERVER_ERROR, "The tables are being changed elsewhere; please try again."
        )

    async def undo(self, key: str, number: int | None = None) -> JsonObject:
        """Take the latest step back, once per call. `number`: only if it is this one."""
        earlier = next((step for step in self.steps if step["undone_by"] == key), None)
        if earlier is not None:
            return earlier
        last = self.last
        if last is None:
            raise not_found("There is nothing to undo: no table has been changed.")
        if number is not None and last["number"] != number:
            raise invalid("Other changes came after that one; please undo those first.")
        place = f"{self.owner}:{last['number']:06d}"
        undone = await self.records.update(STEPS, place, {"undone_by": key}, where={"undone_by": ""})
        if undone is None:
            message = "The tables are being changed elsewhere; please try again."
            raise ToolFailure(FailureCategory.SERVER_ERROR, message)
        return undone

    async def page(self, table_id: str, number: int) -> JsonObject:
        """Page `number` (from 1) of a table that an answer gave as `table_id`.

        Raises:
            ToolFailure: not_found when there is no such table or page, or it is another owner's.
        """
        sheet = await self._sheet_of(table_id)
        pages = max(1, -(-sheet.rows // PAGE_ROWS))
        if not 1 <= number <= pages:
            raise not_found(f"There are {pages} pages; there is no page {number}.")
        sql = f"SELECT * FROM in0 LIMIT {PAGE_ROWS} OFFSET {(number - 1) * PAGE_ROWS}"  # noqa: S608 - numbers
        found = await self.read(sql, {}, sheet)
        return {"rows": found, "page": number, "pages": pages, "row_count": sheet.rows}

    async def _sheet_of(self, table_id: str) -> Sheet:
        if table_id.startswith(BASE):
            found = base_sheets().get(table_id.removeprefix(BASE))
            if found is None:
                raise not_found("There is no such table.")
            return found
        body = await self.records.get(RECIPES, table_id)
        if body is None or body["owner"] != self.owner:
            raise not_found("There is no such table.")
        columns = tuple(Column(name, kind) for name, kind in body["columns"])
        return Sheet(table_id, table_id, columns, body["rows"])


class TableService(Service):
    """Works on tables of its caller's workspace, as all services of this domain do."""

    async def open(self, call: ToolCall, table: str) -> tuple[Workspace, Sheet]:
        """Open the caller's workspace, and one of its tables."""
        workspace = await Workspace.open(self.records, call)
        return workspace, workspace.sheet(table)


def owner_of(call: ToolCall) -> str:
    return f"user:{call.user_id}" if call.user_id else f"session:{call.home}"


def _describe(made: Made) -> JsonObject:
    if made.sheet is None:
        return {"name": made.name, "node": None, "columns": [], "rows": 0}
    columns: Json = [[column.name, column.type] for column in made.sheet.columns]
    return {"name": made.name, "node": made.sheet.node, "columns": columns, "rows": made.sheet.rows}


def _remember(recipe: Recipe) -> None:
    if len(_recipes) >= _CACHED_RECIPES:
        _recipes.clear()
    _recipes[recipe.node] = recipe
