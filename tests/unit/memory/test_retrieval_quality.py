"""Quality of document search without a model: three small evaluations, printed with `-s` (CO-4).

The first is handwritten: information of a travel company, searched in other words. The second uses the shipped
domains: a document is a flow's description with half of its examples, and the other half are the questions. The third
searches pages of documentation in `own_documents/`, by words, by similarity, and by both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.memory.ranking import rank
from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.documents import Candidate, NewDocument, Owned, Passage
from orchestrator.types import DEFAULT_TENANT
from parley.testing.memory import MemoryDocuments

HERE = Path(__file__).parent

POLICIES = {
    "cabin bags": "Every passenger may take one bag of up to 8 kilograms and 55 x 40 x 23 centimetres into the cabin.",
    "checked bags": "Suitcases up to 23 kilograms are checked in for 35 euros each. Overweight luggage costs more.",
    "pets": "Small dogs and cats travel in the cabin in a carrier. Larger animals are not accepted.",
    "refunds": "A ticket of the flexible fare is refunded in full until departure. Saver tickets are not refunded.",
    "changes": "A booking can be moved to another day for 50 euros plus the difference in fare.",
    "children": "Babies under two years sit on a lap and pay a tenth. Children up to eleven pay two thirds.",
    "unaccompanied": "From five years, minors can fly alone; our staff look after them until they are met.",
    "delays": "When a flight arrives three hours late or more, you receive compensation of 250 to 600 euros.",
    "check-in": "Online check-in opens 24 hours before departure and closes one hour before.",
    "boarding": "The gate closes 20 minutes before departure; who comes later is not let aboard.",
    "meals": "On flights over three hours a warm meal is served. Vegetarian and kosher food is ordered in advance.",
    "wheelchairs": "Assistance for passengers with reduced mobility is free; ask for it two days ahead.",
    "lounge": "Business travellers and gold members may use the lounge with one guest.",
    "miles": "Each kilometre flown earns one point; points expire after three years without a flight.",
    "liquids": "Liquids in hand luggage are limited to containers of 100 millilitres in one clear bag.",
    "lost": "Report missing luggage at the desk before you leave the airport; we trace it for 21 days.",
    "visas": "Passengers are responsible for passports and visas; without valid documents boarding is denied.",
    "payment": "We accept credit cards, bank transfer and vouchers. Invoices are sent by e-mail.",
    "seats": "Choosing a seat is free at check-in; before that it costs 8 euros, with extra legroom 25.",
    "bicycles": "Sports equipment such as skis, surfboards and bikes is carried in the hold for 60 euros.",
    "pregnancy": "Expectant mothers may fly until the 36th week; from the 28th a doctor's letter is needed.",
    "groups": "Parties of ten or more get a discount of 8 percent and may name passengers later.",
    "wifi": "Internet on board is free for messages and costs 7 euros for browsing.",
    "cancellation": "If we cancel a flight you choose between your money back and another connection.",
}
QUESTIONS = {
    "how big can my hand luggage be to take into the cabin": "cabin bags",
    "what does a suitcase cost": "checked bags",
    "my bag is overweight": "checked bags",
    "can I bring my dog": "pets",
    "travelling with a cat": "pets",
    "do I get a refund for a saver ticket": "refunds",
    "is the flexible fare refundable": "refunds",
    "moving my booking to a different day": "changes",
    "how much is it for a baby": "children",
    "price for children": "children",
    "can my son fly alone": "unaccompanied",
    "our plane arrived late, is there compensation": "delays",
    "when does online checkin open": "check-in",
    "what time does the gate close": "boarding",
    "vegetarian food on board": "meals",
    "I need a wheelchair, assistance": "wheelchairs",
    "who may enter the lounge": "lounge",
    "do my points expire": "miles",
    "bottle of liquid in the carry-on": "liquids",
    "my luggage is missing": "lost",
    "do I need a visa or passport": "visas",
    "can I pay with a credit card": "payment",
    "can I get an invoice": "payment",
    "a seat with more legroom": "seats",
    "taking my bike": "bicycles",
    "flying while pregnant in the 30th week": "pregnancy",
    "discount for a group": "groups",
    "is there internet on the plane": "wifi",
    "you cancelled my flight": "cancellation",
    "refnd for a flexble fare": "refunds",
}


@dataclass(frozen=True)
class Quality:
    """Search quality.

    Args:
        first: share of questions whose document is the first result.
        reciprocal: mean reciprocal rank.
    """

    first: float
    within_three: float
    reciprocal: float


async def measure(name: str, documents: dict[str, str], questions: list[tuple[str, str]]) -> Quality:
    context = BusinessContext(MemoryDocuments(), HashingEmbedder())
    names: dict[str, str] = {}
    for key, text in documents.items():
        added = await context.documents.add(NewDocument(DEFAULT_TENANT, text, domain=""))
        await context.embed(DEFAULT_TENANT, added.document_id)
        names[added.document_id] = key
    ranks = [
        _rank(
            [names[one.document_id] for one in await context.search(Owned(DEFAULT_TENANT), question)], right
        )
        for question, right in questions
    ]
    quality = Quality(
        first=sum(rank == 1 for rank in ranks) / len(ranks),
        within_three=sum(0 < rank <= 3 for rank in ranks) / len(ranks),
        reciprocal=sum(1 / rank for rank in ranks if rank) / len(ranks),
    )
    print(f"{name}: {len(documents)} documents, {len(ranks)} questions: {quality}")
    missed = [question for (question, _), rank in zip(questions, ranks, strict=True) if rank != 1]
    print("  not first:", "; ".join(missed))
    return quality


def _rank(found: list[str], right: str) -> int:
    return found.index(right) + 1 if right in found else 0


async def test_questions_find_the_policy_that_answers_them() -> None:
    quality = await measure("policies", POLICIES, list(QUESTIONS.items()))

    assert quality.first >= 0.8
    assert quality.within_three >= 0.85


@pytest.mark.parametrize("name", ["travel", "analytics"])
async def test_sayings_find_the_flow_they_belong_to(name: str) -> None:
    flows = load_domain(name).domain.flows
    documents, questions = {}, []
    for dact, flow in flows.items():
        examples = [re.sub(r"\{(\w+)\}", r"\1", example) for example in flow.spec.examples]
        documents[dact] = "\n".join([flow.spec.description, *examples[::2]])
        questions += [(example, dact) for example in examples[1::2]]
    quality = await measure(name, documents, questions)

    assert quality.within_three >= 0.85


def _sections() -> list[tuple[str, str, str]]:
    """Yield question, page and section."""
    asked: dict[str, dict[str, list[str]]] = yaml.load(
        (HERE / "own_documents.yaml").read_text(), yaml.CSafeLoader
    )
    return [
        (question, page, section)
        for page, sections in asked.items()
        for section, questions in sections.items()
        for question in questions
    ]


async def test_questions_find_the_section_of_our_documents() -> None:
    """CO-4: recall at ten and mean reciprocal rank, of both kinds of search and their combination."""
    embedder, documents, owned = HashingEmbedder(), MemoryDocuments(), Owned(DEFAULT_TENANT)
    context = BusinessContext(documents, embedder)
    for page in sorted((HERE / "own_documents").iterdir()):
        title = f"{page.stem}.md"
        added = await documents.add(NewDocument(DEFAULT_TENANT, page.read_text(), title=title))
        await context.embed(DEFAULT_TENANT, added.document_id)
    ranks: dict[str, list[int]] = {"words": [], "likeness": [], "both": []}
    for question, page, section in _sections():
        terms, vector = find_terms(question), embedder.vector(question)
        by_words = await documents.candidates(owned, space="none", vector=vector, terms=terms)
        by_both = await documents.candidates(owned, space=embedder.space, vector=vector, terms=terms)
        nearest = sorted(by_both, key=lambda one: -(one.likeness or 0.0))[:10]
        found = {
            "words": rank(terms, by_words, limit=10),
            "likeness": nearest,
            "both": rank(terms, by_both, limit=10),
        }
        for way, passages in found.items():
            ranks[way].append(_place(passages, page, section))
    quality = {
        way: (
            sum(place > 0 for place in places) / len(places),
            sum(1 / place for place in places if place) / len(places),
        )
        for way, places in ranks.items()
    }
    for way, (recall, reciprocal) in quality.items():
        print(
            f"{way}: {len(ranks[way])} questions, recall at 10 {recall:.2f}, reciprocal rank {reciprocal:.2f}"
        )
    missed = [asked for asked, place in zip(_sections(), ranks["both"], strict=True) if not place]
    print("  missed:", *missed, sep="\n    ")

    recall, reciprocal = quality["both"]
    assert recall >= 0.78
    assert reciprocal >= 0.57


def _place(passages: Sequence[Passage | Candidate], page: str, section: str) -> int:
    right = [one.title == page and one.text.partition("\n")[0].endswith(section) for one in passages]
    return right.index(True) + 1 if any(right) else 0
