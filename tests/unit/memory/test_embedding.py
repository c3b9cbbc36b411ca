"""Embeddings without a model, the fallback for an endpoint, chunks and ranking (CO-4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ModelFailed, ModelNotAllowed
from orchestrator.memory.business_context import LONGEST_CHUNK, cut
from orchestrator.memory.hashing_embedder import COOLING_S, REFUSED_S, FallbackEmbedder, HashingEmbedder
from orchestrator.memory.ranking import rank
from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.documents import Candidate, Embedded
from tests.cases import for_each

EMBEDDER = HashingEmbedder()


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the similarity of two vectors of length 1."""
    return sum(one * other for one, other in zip(left, right, strict=True))


DAY_S = 86_400.0


@given(st.text(max_size=300))
def test_every_text_has_a_vector_of_length_one(text: str) -> None:
    vector = EMBEDDER.vector(text)

    assert len(vector) == 384
    assert isclose(cosine(vector, vector), 1.0, rel_tol=1e-9)


def test_another_process_makes_the_same_vector() -> None:
    code = (
        "from orchestrator.memory.hashing_embedder import HashingEmbedder;"
        "print(repr(HashingEmbedder().vector('Small dogs may fly')))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == repr(EMBEDDER.vector("Small dogs may fly"))


@for_each(
    ("question", "near", "far"),
    [
        ("refunds", "tickets are refunded", "pets are welcome"),
        ("baggage allowence", "the baggage allowance", "the lounge is open"),
        ("check-in online", "online check-in opens early", "wheelchair assistance"),
        ("café in MÁLAGA", "a cafe in malaga", "a bar in oslo"),
    ],
)
def test_words_in_common_and_spelling_make_texts_alike(question: str, near: str, far: str) -> None:
    asked = EMBEDDER.vector(question)

    assert cosine(asked, EMBEDDER.vector(near)) > 2 * abs(cosine(asked, EMBEDDER.vector(far)))


def test_terms_are_words_without_endings_and_without_what_says_nothing() -> None:
    assert find_terms("The bookings that were refunded, and 3 bags") == ("book", "refund", "3", "bag")


class Endpoint:
    """An endpoint with scripted failures."""

    space = "model-x"

    def __init__(self, *endings: Exception | None) -> None:
        self.endings = list(endings)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        ending = self.endings.pop(0)
        if ending is not None:
            raise ending
        return Embedded(self.space, tuple((1.0, 0.0) for _ in texts))


@pytest.mark.parametrize(
    ("error", "away_s"), [(ModelFailed("broken"), COOLING_S), (ModelNotAllowed("no route"), REFUSED_S)]
)
async def test_while_an_endpoint_is_away_texts_are_embedded_without_it(
    error: Exception, away_s: float
) -> None:
    now = [1000.0]
    embedder = FallbackEmbedder(Endpoint(error, None), EMBEDDER, clock=lambda: now[0])
    assert embedder.space == "model-x"

    assert (await embedder.embed(["a"])).space == embedder.space == EMBEDDER.space
    now[0] += away_s - 1
    assert (await embedder.embed(["a"])).space == EMBEDDER.space
    now[0] += 2
    assert embedder.space == (await embedder.embed(["a"])).space == "model-x"


def test_chunks_stand_under_their_headings() -> None:
    text = "Preface.\n\n# Rules\n\n## Pets\n\nSmall dogs.\n\n## Bags\n\n```\n# no heading\n```\n\n# Empty\n"

    assert cut(text) == [
        "Preface.",
        "Rules › Pets\nSmall dogs.",
        "Rules › Bags\n```\n# no heading\n```",
        "Empty",
    ]


@given(st.text(alphabet="ab .\n#", max_size=4000))
def test_chunks_are_bounded_and_lose_no_letter(text: str) -> None:
    chunks = cut(text)
    body = "".join(line for line in text.splitlines() if not line.startswith("#"))

    assert all(chunks)
    assert all(len(chunk.rpartition("›")[2].partition("\n")[2]) <= LONGEST_CHUNK + 2 for chunk in chunks)
    for letter in "ab":
        assert sum(chunk.count(letter) for chunk in chunks) >= body.count(letter)


def candidate(text: str, position: int = 0, **more: object) -> Candidate:
    made = Candidate("doc", position, "", text, find_terms(text), None, (), {}, 0.0)
    return replace(made, **more)


def ranked(question: str, *candidates: Candidate, limit: int = 10) -> list[str]:
    asked = EMBEDDER.vector(question)
    compared = [replace(one, likeness=cosine(asked, EMBEDDER.vector(one.text))) for one in candidates]
    found = rank(find_terms(question), compared, limit=limit)
    assert all(0 <= one.score <= 1 for one in found)
    return [one.text for one in found]


def test_of_two_that_say_the_same_the_newer_is_given() -> None:
    old = candidate("bags cost ten euros", 0)
    new = candidate("bags cost ten euros", 1, updated_at=400 * DAY_S, title="new")
    found = rank(("bag",), [old, new], limit=2)

    assert [one.title for one in found] == ["new"]


def test_a_rare_word_says_more_than_a_frequent_one() -> None:
    texts = [candidate(f"flight number {place}", place) for place in range(8)]

    assert ranked("flight with a lounge", *texts, candidate("the lounge", 9), limit=1) == ["the lounge"]


def test_what_repeats_a_passage_is_not_given() -> None:
    twice = [candidate("dogs fly in the cabin for forty euros", place) for place in range(2)]
    other = candidate("dogs need a vaccination", 2)

    assert ranked("dogs in the cabin for euros", *twice, other) == [twice[0].text, other.text]


def test_what_has_nothing_in_common_is_not_given() -> None:
    assert ranked("quantum physics", candidate("dogs fly in the cabin")) == []
