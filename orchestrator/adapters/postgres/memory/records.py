"""Named collections of JSON documents in PostgreSQL, for a tenant's domain services.

Each call usually runs one statement (RT-20). Background flows can also search all tenants.
"""

from typing import Any

from sqlalchemy import ColumnElement, desc, func, literal, literal_column, select, tuple_
from sqlalchemy.dialects.postgresql import JSONB

from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import records
from orchestrator.types import JsonObject, TenantId

_TEXTS: ColumnElement[Any] = literal_column("'$.* ? (@.type() == \"string\")'::jsonpath")
"""JSON path of a document's top-level strings, as indexed in `schema/40_memory.sql`."""


class PostgresRecords:
    def __init__(self, database: Database, tenant_id: TenantId, domain: str) -> None:
        self._database = database
        self._bound = {"tenant_id": tenant_id, "domain": domain}

    async def get(self, collection: str, key: str) -> JsonObject | None:
        return await self._one("get_record", collection, key=key)

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        stored = await self._one("create_record", collection, key=key, document=dump_json(document))
        while stored is None:  # another call has just stored it
            stored = await self.get(collection, key)
        return stored

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        return await self._one(
            "update_record", collection, key=key, changes=dump_json(changes), fields=dump_json(where or {})
        )

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        arguments = {
            **self._bound,
            "collection": collection,
            "fields": dump_json(where or {}),
            "limit": limit,
        }
        rows = await self._database.fetch_all(statement("find_records"), arguments)
        return [row[0] for row in rows]

    async def _one(self, name: str, collection: str, **arguments: Any) -> JsonObject | None:
        bound = {**self._bound, "collection": collection, **arguments}
        row = await self._database.fetch_one(statement(name), bound)
        return None if row is None else row[0]


class PostgresCollections:
    """The collections of domain services, across all tenants. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: TenantId, domain: str) -> PostgresRecords:
        return PostgresRecords(self._database, tenant_id, domain)

    async def everywhere(
        self,
        domain: str,
        collection: str,
        where: JsonObject,
        *,
        after: tuple[TenantId, str] = (TenantId(""), ""),
        limit: int = 500,
    ) -> list[tuple[TenantId, str, JsonObject]]:
        """Return up to `limit` documents that contain `where`, from all tenants, each with its tenant and key.

        The documents are ordered by tenant and key, starting after `after`.
        """
        place = (records.c.tenant_id, records.c.key)
        query = (
            select(*place, records.c.document)
            .where(
                records.c.domain == domain,
                records.c.collection == collection,
                _texts(records.c.document).contains(_texts(literal(where, JSONB))),
                records.c.document.contains(where),
                tuple_(*place) > after,
            )
            .order_by(*place)
            .limit(limit)
        )
        rows = await self._database.read_all(query)
        return [(TenantId(row.tenant_id), row.key, row.document) for row in rows]


class PostgresCollectionRows:
    """The `sources` tool for session flows. Its method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rows(
        self, tenant_id: TenantId, domain: str, collection: str, *, limit: int
    ) -> list[JsonObject]:
        """Return up to `limit` of a collection's documents, most recently changed first."""
        table = records.c
        query = (
            select(table.document)
            .where(table.tenant_id == tenant_id, table.domain == domain, table.collection == collection)
            .order_by(desc(table.updated_at))
            .limit(limit)
        )
        return [row[0] for row in await self._database.read_all(query)]


def _texts(document: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.jsonb_path_query_array(document, _TEXTS, type_=JSONB)
