"""Named collections of JSON documents on PostgreSQL, for the services of one domain and tenant."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, cast, func, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from orchestrator.adapters.postgres.models import records
from orchestrator.adapters.postgres.pool import Database
from orchestrator.types import JsonObject, TenantId


class PostgresRecords:
    def __init__(self, database: Database, tenant_id: TenantId, domain: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._domain = domain

    async def get(self, collection: str, key: str) -> JsonObject | None:
        async with self._database.transaction() as connection:
            query = select(records.c.document).where(self._at(collection, key))
            return (await connection.execute(query)).scalar_one_or_none()

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        values = {
            "tenant_id": self._tenant_id,
            "domain": self._domain,
            "collection": collection,
            "key": key,
            "document": document,
        }
        adding = insert(records).values(values).on_conflict_do_nothing()
        async with self._database.transaction() as connection:
            await connection.execute(adding)
            query = select(records.c.document).where(self._at(collection, key))
            return (await connection.execute(query)).scalar_one()

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        changing = (
            update(records)
            .where(self._at(collection, key), *_equals(where))
            .values(
                document=records.c.document.op("||")(cast(changes, JSONB)), updated_at=func.clock_timestamp()
            )
            .returning(records.c.document)
        )
        async with self._database.transaction() as connection:
            return (await connection.execute(changing)).scalar_one_or_none()

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        query = (
            select(records.c.document)
            .where(self._in(collection), *_equals(where))
            .order_by(records.c.key.collate("C"))
            .limit(limit)
        )
        async with self._database.transaction() as connection:
            return list((await connection.execute(query)).scalars())

    def _in(self, collection: str) -> ColumnElement[bool]:
        return and_(
            records.c.tenant_id == self._tenant_id,
            records.c.domain == self._domain,
            records.c.collection == collection,
        )

    def _at(self, collection: str, key: str) -> ColumnElement[bool]:
        return and_(self._in(collection), records.c.key == key)


def _equals(where: JsonObject | None) -> list[ColumnElement[Any]]:
    """Containment, which the index answers, and equality of each field, which containment is not."""
    if not where:
        return []
    fields = [records.c.document[name] == cast(value, JSONB) for name, value in where.items()]
    return [records.c.document.contains(where), *fields]
