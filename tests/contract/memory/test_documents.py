"""Documents in memory, and on PostgreSQL with and without pgvector (CO-4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest

from orchestrator.adapters.postgres.memory.documents import PostgresDocuments
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.errors import NotFound
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.ports.memory.documents import Chunk, Documents, NewDocument, Owned
from orchestrator.types import TenantId, UserId, new_id
from parley.testing.memory import MemoryDocuments

BAGGAGE = (
    "# Baggage\n\nA cabin bag of 8 kg is free.\n\n# Pets\n\nSmall dogs travel in the cabin for 40 euros."
)
REFUNDS = "Tickets of the flexible fare are refunded in full. Others are not refunded."


@pytest.fixture(params=["memory", "postgres", "without pgvector"])
async def documents(request: pytest.FixtureRequest) -> AsyncIterator[Documents]:
    if request.param == "memory":
        yield MemoryDocuments(lambda: 1_000.0)
        return
    url = request.getfixturevalue("database_url")
    migrate(url)
    kind = "vector" if request.param == "postgres" else "real[]"
    await _keep_as(url, kind)
    try:
        async with Database(url) as database:
            yield PostgresDocuments(database)
    finally:
        await _keep_as(url, "vector")


async def _keep_as(url: str, kind: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            f"ALTER TABLE document_chunks ALTER COLUMN embedding TYPE {kind} USING embedding::{kind}"
        )


def new_document(tenant_id: TenantId, text: str = BAGGAGE, **more: object) -> NewDocument:
    return replace(NewDocument(tenant_id, text), **more)


async def filled(documents: Documents, *given: NewDocument) -> BusinessContext:
    context = BusinessContext(documents, HashingEmbedder())
    for document in given:
        added = await documents.add(document)
        await context.embed(document.tenant_id, added.document_id)
    return context


async def test_the_same_text_is_kept_once_and_its_labels_add_up(
    documents: Documents, tenant: TenantId
) -> None:
    first = await documents.add(new_document(tenant, title="Rules", labels=("private",)))
    again = await documents.add(new_document(tenant, title="Rules", labels=("untrusted",)))
    other = await documents.add(new_document(tenant, title="Rules", user_id=UserId("ada")))

    assert (first.created, again.created, other.created) == (True, False, True)
    assert first.document_id == again.document_id != other.document_id
    kept = await documents.get(Owned(tenant), first.document_id)
    assert (kept.text, kept.record.labels) == (BAGGAGE, ("private", "untrusted"))
    assert (kept.record.space, kept.record.chunks, kept.record.characters) == (None, 0, len(BAGGAGE))


async def test_nobody_sees_what_is_of_others(documents: Documents, tenant: TenantId) -> None:
    """RT-22"""
    added = await documents.add(new_document(tenant, user_id=UserId("ada"), domain="travel"))

    seen = [
        [one.document_id for one in await documents.list(owned)]
        for owned in (
            Owned(tenant, UserId("ada")),
            Owned(tenant, UserId("ada"), "travel"),
            Owned(tenant, UserId("ada"), "analytics"),
            Owned(tenant, UserId("bob")),
            Owned(tenant),
            Owned(TenantId("stranger"), UserId("ada")),
        )
    ]
    assert seen == [[added.document_id], [added.document_id], [], [], [], []]
    for owned in (Owned(tenant, UserId("bob")), Owned(TenantId("stranger"), UserId("ada"))):
        with pytest.raises(NotFound):
            await documents.get(owned, added.document_id)
        with pytest.raises(NotFound):
            await documents.delete(owned, added.document_id)


async def test_lists_go_on_after_a_document(documents: Documents, tenant: TenantId) -> None:
    names = sorted([(await documents.add(new_document(tenant, f"Text {n}"))).document_id for n in range(5)])
    first = await documents.list(Owned(tenant), limit=3)
    rest = await documents.list(Owned(tenant), after=first[-1].document_id)

    assert [one.document_id for one in (*first, *rest)] == names


async def test_a_question_finds_the_passage(documents: Documents, tenant: TenantId) -> None:
    context = await filled(
        documents,
        new_document(tenant, title="Rules", labels=("untrusted",), origin={"uploaded_by": "ada"}),
        new_document(tenant, REFUNDS),
    )
    found = await context.search(Owned(tenant), "may my dog fly with me in the cabin?")

    assert "Small dogs" in found[0].text
    assert (found[0].title, found[0].labels) == ("Rules", ("untrusted",))
    assert found[0].origin == {"uploaded_by": "ada"}
    assert 0 < found[0].score <= 1
    assert await context.search(Owned(tenant), "quantum chromodynamics") == []
    assert await context.search(Owned(tenant), "the of and") == []
    assert await context.search(Owned(TenantId("stranger")), "dog") == []


async def test_a_deleted_document_is_not_found_any_more(documents: Documents, tenant: TenantId) -> None:
    context = await filled(documents, new_document(tenant))
    [record] = await documents.list(Owned(tenant))
    await documents.delete(Owned(tenant), record.document_id)

    assert await context.search(Owned(tenant), "dogs in the cabin") == []
    with pytest.raises(NotFound):
        await context.embed(tenant, record.document_id)


async def test_chunks_of_another_text_or_of_none_are_not_taken(
    documents: Documents, tenant: TenantId
) -> None:
    added = await documents.add(new_document(tenant))
    chunk = Chunk(0, "dogs", ("dog",), (1.0, 0.0))

    assert not await documents.set_chunks(tenant, added.document_id, "another digest", "space", [chunk])
    assert not await documents.set_chunks(tenant, "doc_gone", "any", "space", [chunk])


async def test_embedding_again_replaces_and_another_space_counts_by_words_alone(
    documents: Documents, tenant: TenantId
) -> None:
    context = await filled(documents, new_document(tenant))
    [before] = await documents.list(Owned(tenant))
    added = before.document_id
    assert (tenant, added) not in await documents.unembedded(context.space, limit=100_000)
    smaller = BusinessContext(documents, HashingEmbedder(64))
    assert (tenant, added) in await documents.unembedded(smaller.space, limit=100_000)

    by_words = await smaller.search(Owned(tenant), "dogs in the cabin")
    count = await smaller.embed(tenant, added)
    by_both = await smaller.search(Owned(tenant), "dogs in the cabin")

    assert "Small dogs" in by_words[0].text
    assert "Small dogs" in by_both[0].text
    assert by_both[0].score > by_words[0].score
    [record] = await documents.list(Owned(tenant))
    assert (record.space, record.chunks) == ("hashed-64-1", count)


async def test_at_most_the_asked_number_of_candidates(documents: Documents, tenant: TenantId) -> None:
    context = await filled(documents, *(new_document(tenant, f"The cabin of plane {n}") for n in range(30)))
    vector = HashingEmbedder().vector("cabin")
    found = await documents.candidates(
        Owned(tenant), space=context.space, vector=vector, terms=("cabin",), limit=10
    )

    assert 5 <= len(found) <= 10
    assert len({(one.document_id, one.position) for one in found}) == len(found)
    assert len(await context.search(Owned(tenant), "cabin", limit=4)) == 4


async def test_text_that_looks_like_a_statement_is_text(documents: Documents, tenant: TenantId) -> None:
    text = "Robert'); DROP TABLE documents; -- {terms} :limit %s"
    context = await filled(
        documents, new_document(TenantId(new_id("tenant")), text), new_document(tenant, text)
    )

    assert (await context.search(Owned(tenant), text))[0].text == text
