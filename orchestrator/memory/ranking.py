"""Rank candidate chunks without a model, to select the best passages (CO-4).

The criteria are similarity, shared terms, shared terms in headings, and the relevance of the whole document.
The weights were chosen with `tests/unit/memory/test_retrieval_quality.py`.
"""

from collections import Counter
from collections.abc import Sequence
from math import log

from orchestrator.memory.quoting import split_heading
from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.documents import Candidate, Passage

LIKENESS, WORDS, HEADINGS, DOCUMENT = 0.31, 0.34, 0.15, 0.2
SATURATION, LENGTH = 1.2, 0.6
"""The parameters k1 and b of BM25."""
LEAST_LIKENESS = 0.3
"""Minimum similarity of a candidate that shares no terms with the question."""
BEST_OF_DOCUMENT = 3
"""Number of best candidates per document that determine the document's relevance."""
SAME = 0.9
"""Minimum share of terms in common with a better passage for a passage to be omitted as redundant."""


def rank(terms: Sequence[str], candidates: Sequence[Candidate], *, limit: int) -> list[Passage]:
    """Return the best passages for a question, best first, without near-duplicates.

    `terms`: the question's search terms. If scores are equal, passages from newer documents come first.
    """
    asked = set(terms)
    words = _word_scores(asked, candidates)
    by_document: dict[str, list[float]] = {}
    for candidate, shared in zip(candidates, words, strict=True):
        by_document.setdefault(candidate.document_id, []).append(shared)
    scored: list[tuple[float, Candidate]] = []
    for candidate, shared in zip(candidates, words, strict=True):
        alike = max(0.0, candidate.likeness or 0.0)
        if not shared and alike < LEAST_LIKENESS:
            continue
        headings = set(find_terms(f"{candidate.title} {split_heading(candidate)[0]}"))
        heading = len(asked & headings) / len(asked)
        rest = sum(sorted(by_document[candidate.document_id])[-BEST_OF_DOCUMENT:]) / BEST_OF_DOCUMENT
        score = LIKENESS * alike + WORDS * shared + HEADINGS * heading + DOCUMENT * rest
        scored.append((min(1.0, score), candidate))
    scored.sort(key=lambda one: (-one[0], -one[1].updated_at, one[1].document_id, one[1].position))
    chosen: list[tuple[float, Candidate]] = []
    for score, candidate in scored:
        if len(chosen) < limit and all(_overlap(candidate, other) < SAME for _, other in chosen):
            chosen.append((score, candidate))
    return [_passage(score, candidate) for score, candidate in chosen]


def _word_scores(asked: set[str], candidates: Sequence[Candidate]) -> list[float]:
    """Return the candidates' BM25 scores, relative to the score of a typical text that contains all terms."""
    if not asked or not candidates:
        return [0.0] * len(candidates)
    counts = [Counter(candidate.terms) for candidate in candidates]
    usual = sum(len(candidate.terms) for candidate in candidates) / len(candidates) or 1.0
    total = len(candidates)
    found = {term: sum(term in count for count in counts) for term in asked}
    rarity = {term: log(1 + (total - times + 0.5) / (times + 0.5)) for term, times in found.items()}
    best = sum(rarity.values()) * (SATURATION + 1) / 2
    return [_bm25(count, rarity, usual) / best if best else 0.0 for count in counts]


def _bm25(count: Counter[str], rarity: dict[str, float], usual: float) -> float:
    size = count.total() / usual
    return sum(
        weight * count[term] * (SATURATION + 1) / (count[term] + SATURATION * (1 - LENGTH + LENGTH * size))
        for term, weight in rarity.items()
        if count[term]
    )


def _overlap(left: Candidate, right: Candidate) -> float:
    one, other = set(left.terms), set(right.terms)
    return len(one & other) / len(one | other) if one or other else 1.0


def _passage(score: float, found: Candidate) -> Passage:
    return Passage(
        document_id=found.document_id,
        position=found.position,
        title=found.title,
        text=found.text,
        score=round(score, 4),
        labels=found.labels,
        origin=found.origin,
        updated_at=found.updated_at,
    )
