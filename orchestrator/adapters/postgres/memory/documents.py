"""Documents and their chunks in PostgreSQL (CO-4).

Full-text search and, with pgvector, vector distance select the candidates, each using an index. Without
pgvector, only chunks that share a term with the question are candidates, and similarity affects only their
ranking.
"""

import builtins
from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import run_named, source, with_colons
from orchestrator.adapters.postgres.tables import record_of, required
from orchestrator.errors import NotFound
from orchestrator.ports.memory.documents import (
    CANDIDATES,
    Added,
    Candidate,
    Chunk,
    Document,
    DocumentRecord,
    NewDocument,
    Owned,
    digest_of,
    name_document,
)
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, TenantId

_log = get_logger(__name__)

_RECORD = (
    "document_id, domain, coalesce(title, '') AS title, user_id, coalesce(labels, '[]') AS labels, origin, space,"
    " chunks, length(body) AS characters, extract(epoch FROM updated_at)::float8 AS updated_at"
)
_VISIBLE = with_colons(source("parts/visible_documents"))
_SCAN = "SELECT set_config('hnsw.ef_search', :half, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)"
"""Settings that let pgvector scan as many entries as requested, and more if some belong to other owners."""
COMMON = 500
"""Number of chunks above which a term is too common to select candidates, unless all terms are common.

Common terms still affect the ranking.
"""
LONGEST_INDEXED = 2000
"""Maximum number of dimensions of an indexed `vector`. Longer vectors are indexed in half precision."""
_LIKENESS_OF_VECTORS = "1 - (chunk.embedding <=> %(vector)s::vector)"
_LIKENESS_OF_ARRAYS = (
    "(SELECT sum(one * other) FROM unnest(chunk.embedding, %(vector)s::real[]) AS pair (one, other))"
)


class PostgresDocuments:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_vectors: bool | None = None

    async def add(self, document: NewDocument) -> Added:
        document_id = name_document(document)
        names = {"tenant_id": document.tenant_id, "document_id": document_id}
        values = {
            **names,
            "domain": document.domain,
            "title": document.title,
            "body": document.text,
            "labels": dump_json(sorted(set(document.labels))),
            "user_id": document.user_id,
            "digest": digest_of(document),
            "origin": dump_json(document.origin),
        }
        async with self._database.transaction() as connection:
            created = (await run_named(connection, "add_document", **values)).scalar() is not None
            if not created and document.labels:
                await run_named(connection, "join_labels", **names, labels=list(document.labels))
        return Added(document_id, created)

    async def get(self, owned: Owned, document_id: str) -> Document:
        return await self._one(_VISIBLE, _arguments(owned), document_id)

    async def list(self, owned: Owned, *, after: str = "", limit: int = 100) -> list[DocumentRecord]:
        query = (
            f"SELECT {_RECORD} FROM documents WHERE {_VISIBLE} AND document_id > :after"  # noqa: S608 - only constants
            " ORDER BY document_id LIMIT :limit"
        )
        arguments = {**_arguments(owned), "after": after, "limit": limit}
        return [
            record_of(DocumentRecord, row) for row in await self._database.read_all(text(query), arguments)
        ]

    async def has_some(self, tenant_id: TenantId) -> bool:
        query = text("SELECT 1 FROM documents WHERE tenant_id = :tenant_id LIMIT 1")
        return await self._database.read_one(query, {"tenant_id": tenant_id}) is not None

    async def delete(self, owned: Owned, document_id: str) -> None:
        query = f"DELETE FROM documents WHERE {_VISIBLE} AND document_id = :document_id"  # noqa: S608 - only constants
        arguments = {**_arguments(owned), "document_id": document_id}
        if not await self._database.write(text(query), arguments):
            raise NotFound("document", document_id)

    async def unembedded(self, space: str, *, limit: int = 100) -> builtins.list[tuple[TenantId, str]]:
        query = text(
            "SELECT tenant_id, document_id FROM documents WHERE space IS DISTINCT FROM :space"
            " ORDER BY updated_at LIMIT :limit"
        )
        rows = await self._database.read_all(query, {"space": space, "limit": limit})
        return [(TenantId(row.tenant_id), row.document_id) for row in rows]

    async def fetch(self, tenant_id: TenantId, document_id: str) -> Document:
        return await self._one("tenant_id = :tenant_id", {"tenant_id": tenant_id}, document_id)

    async def set_chunks(
        self, tenant_id: TenantId, document_id: str, digest: str, space: str, chunks: Sequence[Chunk]
    ) -> bool:
        names = {"tenant_id": tenant_id, "document_id": document_id}
        async with self._database.transaction() as connection:
            kept = await connection.execute(
                text(
                    "UPDATE documents SET space = :space, chunks = :chunks WHERE tenant_id = :tenant_id"
                    " AND document_id = :document_id AND digest = :digest"
                ),
                {**names, "space": space, "chunks": len(chunks), "digest": digest},
            )
            if not kept.rowcount:
                return False
            await connection.execute(
                text(
                    "DELETE FROM document_chunks WHERE tenant_id = :tenant_id AND document_id = :document_id"
                ),
                names,
            )
            if chunks:
                await self._insert(connection, names, chunks)
        return True

    async def candidates(
        self,
        owned: Owned,
        *,
        space: str,
        vector: Sequence[float],
        terms: Sequence[str],
        limit: int = CANDIDATES,
    ) -> builtins.list[Candidate]:
        arguments = {**_arguments(owned), "space": space, "half": (limit + 1) // 2}
        async with self._database.transaction() as connection:
            everything = sorted(set(terms))
            arguments["asked"] = _any_of(await self._choose_terms(connection, everything))
            arguments["all_asked"] = _any_of(everything)
            ways = [source("sharing_chunks")]
            has_vectors = await self._look_for_vectors(connection)
            if has_vectors:
                kind = "vector" if len(vector) <= LONGEST_INDEXED else "halfvec"
                ways.append(source("nearest_chunks").format(dimensions=len(vector), kind=kind))
                await connection.execute(text(_SCAN), {"half": str(arguments["half"])})
            arguments["vector"] = _vector(vector) if has_vectors else _array(vector)
            found = " UNION ".join(f"({way})" for way in ways)
            likeness = _LIKENESS_OF_VECTORS if has_vectors else _LIKENESS_OF_ARRAYS
            query = source("find_candidates").format(found=found, likeness=likeness)
            return [record_of(Candidate, row) for row in await connection.exec_driver_sql(query, arguments)]

    async def _choose_terms(
        self, connection: AsyncConnection, terms: builtins.list[str]
    ) -> builtins.list[str]:
        """Drop terms that occur in too many chunks according to the statistics, but keep at least one term."""
        chunks = {row.word: row.chunks for row in await run_named(connection, "common_words", terms=terms)}
        rare = [term for term in terms if chunks.get(term, 0.0) <= COMMON]
        return rare or sorted(terms, key=lambda term: chunks[term])[:1]

    async def _insert(self, connection: AsyncConnection, names: JsonObject, chunks: Sequence[Chunk]) -> None:
        kind = "vector" if await self._look_for_vectors(connection) else "real[]"
        write = _vector if kind == "vector" else _array
        rows = [
            {
                **names,
                "position": chunk.position,
                "text": chunk.text,
                "terms": list(chunk.terms),
                "words": " ".join(chunk.terms),
                "dimensions": len(chunk.vector),
                "embedding": write(chunk.vector),
            }
            for chunk in chunks
        ]
        await connection.exec_driver_sql(source("insert_chunk").format(kind=kind), rows)

    async def _look_for_vectors(self, connection: AsyncConnection) -> bool:
        """Return whether embeddings have pgvector's `vector` type. Only the first call queries the database."""
        known = self._has_vectors
        if known is None:
            query = text(
                "SELECT format_type(atttypid, NULL) FROM pg_attribute"
                " WHERE attrelid = 'document_chunks'::regclass AND attname = 'embedding'"
            )
            known = self._has_vectors = (await connection.execute(query)).scalar_one() == "vector"
            if not known:
                _log.warning("Without pgvector, document search finds chunks by words only.")
        return known

    async def _one(self, condition: str, arguments: JsonObject, document_id: str) -> Document:
        query = (
            f"SELECT {_RECORD}, body, digest FROM documents WHERE {condition} AND document_id = :document_id"  # noqa: S608
        )
        found = await self._database.read_one(text(query), {**arguments, "document_id": document_id})
        row = required(found, "document", document_id)
        return Document(record_of(DocumentRecord, row), row.body, row.digest)


def _arguments(owned: Owned) -> JsonObject:
    return {"tenant_id": owned.tenant_id, "user_id": owned.user_id, "domain": owned.domain}


def _vector(values: Sequence[float]) -> str:
    return f"[{','.join(map(repr, values))}]"


def _array(values: Sequence[float]) -> str:
    return f"{{{','.join(map(repr, values))}}}"


def _any_of(terms: Sequence[str]) -> str:
    """Return a full-text query for chunks that contain any of these alphanumeric terms."""
    return " | ".join(f"'{term}'" for term in terms)
