"""Search in many documents: how long a question takes on PostgreSQL, and that both indexes are used.

Chunks are made of words that are as rare as words are (Zipf), embedded by hashing. Questions take words of a chunk.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time

import psycopg

from benchmarks.environment import open_stores, parse
from orchestrator.adapters.postgres.memory.documents import PostgresDocuments
from orchestrator.adapters.postgres.pool import Database
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.ports.memory.documents import Owned
from orchestrator.types import DEFAULT_TENANT

VOCABULARY = 30_000
WORDS_OF_A_CHUNK = 60
WORDS_OF_A_QUESTION = 6
CHUNKS_OF_A_DOCUMENT = 50
NEAREST = "document_chunks_nearest_384_idx"
SPACE = HashingEmbedder().space
COPY = "COPY document_chunks (tenant_id, document_id, position, text, terms, words, embedding, dimensions) FROM STDIN"


def make_texts(many: int, chance: random.Random) -> list[str]:
    words = [f"w{number}" for number in range(VOCABULARY)]
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]
    return [" ".join(chance.choices(words, weights, k=WORDS_OF_A_CHUNK)) for _ in range(many)]


def fill(url: str, texts: list[str]) -> None:
    """Write the chunks as the store does; their index of likeness is quicker built when they are there."""
    embedder = HashingEmbedder()
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP INDEX {NEAREST}")
        for start in range(0, len(texts), CHUNKS_OF_A_DOCUMENT):
            name = f"doc_{start // CHUNKS_OF_A_DOCUMENT:06}"
            connection.execute(
                "INSERT INTO documents (tenant_id, document_id, domain, title, body, labels,"
                " digest, origin, space, chunks)"
                " VALUES (%s, %s, '', %s, '', '[]', %s, '{}', %s, %s)",
                (DEFAULT_TENANT, name, name, name, SPACE, CHUNKS_OF_A_DOCUMENT),
            )
        with connection.cursor().copy(COPY) as copy:
            for place, text in enumerate(texts):
                terms = text.split()
                vector = f"[{','.join(f'{value:.5f}' for value in embedder.vector(text))}]"
                words = " ".join(f"'{term}':{at}" for at, term in enumerate(terms, start=1))
                name = f"doc_{place // CHUNKS_OF_A_DOCUMENT:06}"
                row = (DEFAULT_TENANT, name, place % CHUNKS_OF_A_DOCUMENT, text, terms, words, vector, 384)
                copy.write_row(row)
        connection.execute("SET maintenance_work_mem = '512MB'")
        connection.execute(
            f"CREATE INDEX {NEAREST} ON document_chunks USING hnsw ((embedding::vector(384)) vector_cosine_ops)"
            " WHERE dimensions = 384"
        )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE document_chunks")
        connection.execute("ANALYZE documents")


def count_scans(url: str) -> str:
    """Say how often each index of the chunks was used."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes"
            " WHERE relname = 'document_chunks' AND idx_scan > 0 ORDER BY indexrelname"
        ).fetchall()
    return "; ".join(f"{name}: {scans} scans" for name, scans in rows)


async def main() -> None:
    arguments = parse(
        "benchmarks.documents",
        __doc__,
        chunks=(100_000, "pieces of documents"),
        questions=(200, "that are asked one after the other"),
        bar_ms=(50, "the most that the middle question may take"),
    )
    chance = random.Random(17)
    texts = make_texts(arguments.chunks, chance)
    with open_stores() as (running, _folder):
        began = time.monotonic()
        await asyncio.to_thread(fill, running.database_url, texts)
        print(f"{arguments.chunks} chunks stored and indexed in {time.monotonic() - began:.0f} s")
        async with Database(running.database_url) as database:
            context = BusinessContext(PostgresDocuments(database), HashingEmbedder())
            took_ms: list[float] = []
            found = 0
            for _ in range(arguments.questions):
                place = chance.randrange(len(texts))
                asked = " ".join(chance.sample(texts[place].split(), WORDS_OF_A_QUESTION))
                began = time.perf_counter()
                passages = await context.search(Owned(DEFAULT_TENANT), asked)
                took_ms.append(1000 * (time.perf_counter() - began))
                found += any(one.text == texts[place] for one in passages)
        scans = count_scans(running.database_url)
    middle, worst = statistics.median(took_ms), statistics.quantiles(took_ms, n=20)[-1]
    print(scans)
    print(
        f"{middle:.1f} ms at the median, {worst:.1f} ms at the 95th percentile;"
        f" the chunk asked for is among the ten in {found} of {arguments.questions}"
    )
    if middle > arguments.bar_ms:
        raise SystemExit(f"The median is above {arguments.bar_ms} ms.")


if __name__ == "__main__":
    asyncio.run(main())
