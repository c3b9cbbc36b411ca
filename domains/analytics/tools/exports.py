"""Make what leaves a workspace: tables as text, and reports of several summaries."""

from __future__ import annotations

import csv
import hashlib
import io
import secrets

import orjson

from domains.analytics.statements.parts import Column, Values, invalid, not_found, quote, to_objects
from domains.analytics.statements.question import Question, write_question
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import TableService, Workspace, owner_of
from domains.analytics.tools.display import about, show_value
from orchestrator import ExportLink, JsonObject, ToolCall

EXPORTS = "exports"
LINK_LIVES_S = 24 * 60 * 60
MOST_EXPORTED = 20_000
LONGEST_SHOWN = 4000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would carry out when a cell of text begins with it."""


class Exports(TableService):
    """Exports tables, and reports on them."""

    async def export(
        self,
        *,
        table: str,
        call: ToolCall,
        format: str = "csv",  # noqa: A002
        question: JsonObject | None = None,
    ) -> JsonObject:
        """Export a table, or what was asked of it, as text, kept as a document; its beginning is given back.

        Raises:
            ToolFailure: validation_error when it is too large.
        """
        workspace, sheet = await self.open(call, table)
        asked, values = Question.of(question or {}), Values()
        sql = await write_question(workspace, sheet, asked, values)
        found = await workspace.read(f"SELECT * FROM ({sql}) LIMIT {MOST_EXPORTED + 1}", values.named, sheet)  # noqa: S608
        if len(found.rows) > MOST_EXPORTED:
            raise invalid(
                f"I export at most {MOST_EXPORTED:,} rows, and these are more. Please filter {sheet.name}."
            )
        names = [column.name for column in found.columns]
        text = write_text(names, to_objects(found.columns, found.rows), format)
        key = f"{workspace.owner}:{sheet.node}:{sql}:{sorted(values.named.items())}:{format}"
        document_id = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        document: JsonObject = {"owner": workspace.owner, "table": sheet.name, "format": format, "text": text}
        kept = await self.records.create(EXPORTS, document_id, {**document, "key": secrets.token_urlsafe()})
        link = ExportLink(call.tenant_id, call.session_id, document_id, int(call.now) + LINK_LIVES_S)
        return {
            **about(workspace, sheet),
            "document_id": document_id,
            "path": link.path(kept["key"]),
            "format": format,
            "characters": len(text),
            "row_count": len(found.rows),
            "what": asked.name_of(sheet.name),
            "text": text[:LONGEST_SHOWN],
        }

    async def document(self, document_id: str, call: ToolCall) -> JsonObject:
        """Give a whole export: {name, format, text, key}.

        Raises:
            ToolFailure: not_found, also for what belongs to somebody else.
        """
        found = await self.records.get(EXPORTS, document_id)
        if found is None or found["owner"] != owner_of(call):
            raise not_found("There is no such document.")
        return {"name": found["table"], **{name: found[name] for name in ("format", "text", "key")}}

    async def report(self, *, table: str, call: ToolCall) -> JsonObject:
        """Report size, numbers, groups and gaps of a table, each in a section."""
        workspace, sheet = await self.open(call, table)
        sections = {
            "size": {"rows": show_value(sheet.rows), "columns": str(len(sheet.columns))},
            "numbers": {one.name: await _sum_up(workspace, sheet, one) for one in sheet.numbers[:8]},
            "groups": {one.name: await _count_groups(workspace, sheet, one) for one in sheet.texts[:4]},
        }
        parts: list[JsonObject] = [
            {
                "section": name,
                "items": [{"section": name, "item": item, "value": value} for item, value in items.items()],
            }
            for name, items in sections.items()
            if items
        ]
        rows = [row for part in parts for row in part["items"]]
        return {**about(workspace, sheet), "rows": rows, "sections": parts, "row_count": len(rows)}


def write_text(names: list[str], rows: list[JsonObject], format: str) -> str:  # noqa: A002
    """Write rows as CSV or JSON; a text that a spreadsheet would take for a formula is marked as text."""
    if format == "json":
        return orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_harmless(row[name]) for name in names] for row in rows)
    return out.getvalue()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


async def _sum_up(workspace: Workspace, sheet: Sheet, column: Column) -> str:
    name = quote(column.name)
    sql = f"SELECT avg({name}), min({name}), max({name}), count(*) - count({name}) FROM in0"  # noqa: S608
    mean, low, high, gaps = (await workspace.read(sql, {}, sheet)).rows[0]
    reach = f"{show_value(low, column.name)} to {show_value(high, column.name)}"
    return f"{show_value(mean)} on average, {reach}" + (f", {gaps} missing" if gaps else "")


async def _count_groups(workspace: Workspace, sheet: Sheet, column: Column) -> str:
    name = quote(column.name)
    counted = f"SELECT {name}::VARCHAR, count(*) AS n FROM in0 WHERE {name} IS NOT NULL GROUP BY 1"  # noqa: S608
    found = (await workspace.read(f"{counted} ORDER BY n DESC, 1 LIMIT 3", {}, sheet)).rows
    return ", ".join(f"{show_value(value)} ({show_value(count)})" for value, count in found)
