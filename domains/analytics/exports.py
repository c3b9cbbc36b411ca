from __future__ import annotations

import csv
import hashlib
import io
import secrets

import orjson

from domains.analytics.catalogue import Column
from domains.analytics.display import show_value
from domains.analytics.engine import invalid, not_found
from domains.analytics.workspace import TableService, owner_of
from parley import ExportLink, JsonObject, ToolCall

EXPORTS = "exports"
LINK_LIVES_S = 24 * 60 * 60
MOST_EXPORTED = 20_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets evaluate cells that start with these


class Exports(TableService):
    async def export(
        self,
        *,
        call: ToolCall,
        table: str | None = None,
        table_id: str | None = None,
        format: str = "csv",  # noqa: A002
    ) -> JsonObject:
        """Store a result or a table as a text document. Return the document's ID and signed path.

        `format`: csv or json.

        Raises:
            ToolFailure: validation_error if there are more than `MOST_EXPORTED` rows.
        """
        workspace, sheet = await self.open(call, table, table_id)
        if sheet.rows > MOST_EXPORTED:
            raise invalid(f"I can export at most {MOST_EXPORTED:,} rows; {sheet.name} has {sheet.rows:,}.")
        found = await workspace.read(sheet.sql)
        text = write_text(sheet.names, found.to_objects(), format)
        key = f"{workspace.owner}:{sheet.sql}:{format}"
        document_id = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        document: JsonObject = {"owner": workspace.owner, "table": sheet.name, "format": format, "text": text}
        kept = await self.records.create(EXPORTS, document_id, {**document, "key": secrets.token_urlsafe()})
        link = ExportLink(call.tenant_id, call.session_id, document_id, int(call.now) + LINK_LIVES_S)
        return {
            **workspace.about(sheet),
            "document_id": document_id,
            "path": link.path(kept["key"]),
            "format": format,
            "row_count": len(found.rows),
            "what": "the last result" if table_id is not None else sheet.name,
        }

    async def document(self, document_id: str, call: ToolCall) -> JsonObject:
        """Return a stored document as ``{name, format, text, key}``.

        Raises:
            ToolFailure: not_found if the caller has no document with this ID.
        """
        found = await self.records.get(EXPORTS, document_id)
        if found is None or found["owner"] != owner_of(call):
            raise not_found("There's no such document.")
        return {"name": found["table"], **{name: found[name] for name in ("format", "text", "key")}}

    async def report(self, *, table: str, call: ToolCall) -> JsonObject:
        workspace, sheet = await self.open(call, table)
        wanted = (
            "try_cast(avg AS DOUBLE) AS mean, min, max, approx_unique AS different, null_percentage AS gaps"
        )
        found = (await workspace.read(f"SELECT {wanted} FROM (SUMMARIZE {sheet.sql})")).to_objects()  # noqa: S608
        rows: list[JsonObject] = [
            {"column": one.name, "summary": _sum_up(one, row)}
            for one, row in zip(sheet.columns, found, strict=True)
        ]
        return {**workspace.about(sheet), "rows": rows, "row_count": len(rows), "total": sheet.rows}


def write_text(names: list[str], rows: list[JsonObject], format: str) -> str:  # noqa: A002
    """Format rows as CSV or JSON. In CSV, text that a spreadsheet would evaluate gets a leading apostrophe."""
    if format == "json":
        return orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_harmless(row[name]) for name in names] for row in rows)
    return out.getvalue()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _sum_up(column: Column, found: JsonObject) -> str:
    if column.is_text:
        text = f"about {show_value(found['different'])} different values"
    else:
        text = f"{found['min']} to {found['max']}"
    if column.is_number:
        text = f"{show_value(found['mean'])} on average, {text}"
    return text + (f", {show_value(found['gaps'])}% missing" if found["gaps"] else "")
