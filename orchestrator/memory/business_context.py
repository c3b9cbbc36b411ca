"""Business context: split, embed and search documents (CO-4)."""

import re
from collections.abc import Iterator

from orchestrator.domain.services import Service, ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.memory.quoting import describe_passage
from orchestrator.memory.ranking import rank
from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.documents import (
    LONGEST_QUESTION,
    PASSAGES,
    Chunk,
    ContextSearch,
    Embedder,
    Owned,
    Passage,
)
from orchestrator.ports.memory.documents import Documents as DocumentStore
from orchestrator.saying import say
from orchestrator.types import JsonObject, TenantId

LONGEST_CHUNK = 900
"""Maximum length of a chunk without its headings, in characters."""
SHORTEST_CHUNK = 200
"""Preferred minimum length of a chunk, in characters.

Shorter paragraphs are joined with the next paragraph of their section.
"""
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_BLANK = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n")


def cut(text: str) -> list[str]:
    """Split plain text or Markdown into non-empty chunks, each starting with its headings."""
    chunks: list[str] = []
    for headings, body in _sections(text):
        lead = " › ".join(headings)
        pieces = list(_join(_paragraphs(body), SHORTEST_CHUNK))
        chunks += [f"{lead}\n{piece}" if lead else piece for piece in pieces or ([""] if lead else [])]
    return [chunk.strip() for chunk in chunks]


def _sections(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the document's sections with their headings. Skip empty sections that have subsections."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        level = len(heading[1])
        if any(line.strip() for line in lines) or (path and level <= path[-1][0]):
            yield tuple(name for _, name in path), "\n".join(lines)
        lines = []
        path = [(depth, name) for depth, name in path if depth < level] + [(level, heading[2])]
    yield tuple(name for _, name in path), "\n".join(lines)


def _paragraphs(body: str) -> Iterator[str]:
    for paragraph in _BLANK.split(body):
        if len(paragraph) <= LONGEST_CHUNK:
            yield paragraph.strip()
        else:
            yield from _join(_sentences(paragraph), LONGEST_CHUNK, between=" ")


def _sentences(paragraph: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(paragraph):
        for start in range(0, len(sentence), LONGEST_CHUNK):
            yield sentence[start : start + LONGEST_CHUNK].strip()


def _join(pieces: Iterator[str], enough: int, *, between: str = "\n\n") -> Iterator[str]:
    """Join pieces until a text has `enough` characters, but never more than `LONGEST_CHUNK`."""
    held = ""
    for piece in filter(None, pieces):
        joined = f"{held}{between}{piece}" if held else piece
        if held and (len(held) >= enough or len(joined) > LONGEST_CHUNK):
            yield held
            held = piece
        else:
            held = joined
    if held:
        yield held


MOST_CHUNKS = 500
"""Maximum number of chunks per document. Later text is not indexed."""
EMBEDDED_AT_ONCE = 64


class BusinessContext:
    """A `ContextSearch` over the document store."""

    def __init__(self, documents: DocumentStore, embedder: Embedder) -> None:
        self.documents = documents
        self.embedder = embedder

    @property
    def space(self) -> str:
        return self.embedder.space

    async def search(self, owned: Owned, question: str, *, limit: int = PASSAGES) -> list[Passage]:
        asked = question[:LONGEST_QUESTION]
        terms = find_terms(asked)
        if not terms:
            return []
        embedded = await self.embedder.embed([asked])
        (vector,) = embedded.vectors
        candidates = await self.documents.candidates(owned, space=embedded.space, vector=vector, terms=terms)
        return rank(terms, candidates, limit=limit)

    async def embed(self, tenant_id: TenantId, document_id: str) -> int | None:
        """Split and embed a document, store the chunks, and return their number.

        Return None if the document was changed or deleted before the chunks were stored. Raises NotFound,
        Unavailable or ModelUnavailable.
        """
        document = await self.documents.fetch(tenant_id, document_id)
        title = document.record.title
        texts = cut(document.text)[:MOST_CHUNKS]
        shown = [f"{title}\n{text}" if title else text for text in texts]
        space, vectors = self.embedder.space, list[tuple[float, ...]]()
        for start in range(0, len(shown), EMBEDDED_AT_ONCE):
            embedded = await self.embedder.embed(shown[start : start + EMBEDDED_AT_ONCE])
            if vectors and embedded.space != space:  # The embedder changed during the loop, so start over.
                return await self.embed(tenant_id, document_id)
            space = embedded.space
            vectors += embedded.vectors
        chunks = [
            Chunk(position, text, find_terms(whole), vector)
            for position, (text, whole, vector) in enumerate(zip(texts, shown, vectors, strict=True))
        ]
        kept = await self.documents.set_chunks(tenant_id, document_id, document.digest, space, chunks)
        return len(chunks) if kept else None


PASSAGES_READ = 5


class DomainDocuments:
    """A `DocumentSearch` for one domain's tools."""

    def __init__(self, context: ContextSearch, domain: str) -> None:
        self._context = context
        self._domain = domain

    async def search(self, call: ToolCall, question: str) -> JsonObject:
        owned = Owned(call.tenant_id, call.user_id, self._domain)
        found = await self._context.search(owned, question, limit=PASSAGES_READ)
        labels = {label for passage in found for label in passage.labels}
        return {"passages": [describe_passage(one) for one in found], "labels": sorted(labels)}


class Documents(Service):
    """A service that searches documents for passages that answer a question."""

    async def search(self, *, question: str, call: ToolCall) -> JsonObject:
        if self.documents is None:
            raise ToolFailure(FailureCategory.SERVER_ERROR, say("no_documents"))
        return await self.documents.search(call, question)
