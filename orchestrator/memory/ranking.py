"""Ranking of about a hundred candidate chunks into ten passages, without a model (CO-4).

Criteria are similarity, terms, heading terms, relevance of the rest of the document, age and diversity. The
weights were chosen with `tests/unit/memory/test_retrieval_quality.py`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from orchestrator.memory.quoting import split_heading
from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.documents import Candidate, Passage

LIKENESS, WORDS, HEADINGS, DOCUMENT, AGE = 0.3, 0.33, 0.14, 0.2, 0.03
SATURATION, LENGTH = 1.2, 0.6
"""The parameters k1 and b of BM25."""
HALF_LIFE_S = 180 * 86_400.0
LEAST_LIKENESS = 0.3
"""Minimum similarity of a candidate that shares no terms with the question."""
BEST_OF_DOCUMENT = 3
"""The number of best candidates per document that determine the document's relevance."""
VARIETY = 0.07
"""Penalty for similarity to a passage that was already chosen."""
SAME = 0.9
"""Similarity above which a passage is omitted as redundant."""


@dataclass(slots=True)
class _Scored:
    candidate: Candidate
    score: float
    alike: float = 0.0
    """Highest similarity to a chosen passage, from 0 to 1."""


def rank(terms: Sequence[str], candidates: Sequence[Candidate], *, now: float, limit: int) -> list[Passage]:
    """Return the best passages for a question, best first, without near-duplicates.

    `terms`: the question's search terms. `now`: Unix seconds. Newer passages rank slightly higher.
    """
    asked = set(terms)
    words = _word_scores(asked, candidates)
    by_document: dict[str, list[float]] = {}
    for candidate, shared in zip(candidates, words, strict=True):
        by_document.setdefault(candidate.document_id, []).append(shared)
    about = {
        document_id: sum(sorted(shares)[-BEST_OF_DOCUMENT:]) / BEST_OF_DOCUMENT
        for document_id, shares in by_document.items()
    }
    scored: list[_Scored] = []
    for candidate, shared in zip(candidates, words, strict=True):
        alike = max(0.0, candidate.likeness or 0.0)
        if not shared and alike < LEAST_LIKENESS:
            continue
        age = max(0.0, now - candidate.updated_at)
        heading = len(asked & set(find_terms(f"{candidate.title} {split_heading(candidate)[0]}"))) / len(
            asked
        )
        score = LIKENESS * alike + WORDS * shared + HEADINGS * heading
        score += DOCUMENT * about[candidate.document_id] + AGE * 0.5 ** (age / HALF_LIFE_S)
        scored.append(_Scored(candidate, min(1.0, score)))
    return [_passage(one) for one in _vary(scored, limit)]


def _word_scores(asked: set[str], candidates: Sequence[Candidate]) -> list[float]:
    """Return the candidates' BM25 scores, relative to a text that contains all terms."""
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


def _vary(scored: list[_Scored], limit: int) -> list[_Scored]:
    """Select candidates by score minus similarity to those already selected (maximal marginal relevance)."""
    left: list[_Scored] = sorted(
        scored, key=lambda one: (-one.score, one.candidate.document_id, one.candidate.position)
    )
    chosen: list[_Scored] = []
    while left and len(chosen) < limit:
        taken = max(left, key=lambda one: one.score - VARIETY * one.alike)
        chosen.append(taken)
        for other in left:
            other.alike = max(other.alike, _overlap(taken.candidate, other.candidate))
        left = [one for one in left if one is not taken and one.alike < SAME]
    return chosen


def _overlap(left: Candidate, right: Candidate) -> float:
    one, other = set(left.terms), set(right.terms)
    return len(one & other) / len(one | other) if one or other else 1.0


def _passage(scored: _Scored) -> Passage:
    found = scored.candidate
    return Passage(
        document_id=found.document_id,
        position=found.position,
        title=found.title,
        text=found.text,
        score=round(scored.score, 4),
        labels=found.labels,
        origin=found.origin,
        updated_at=found.updated_at,
    )
