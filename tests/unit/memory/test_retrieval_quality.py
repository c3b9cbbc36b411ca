"""Quality of document search without a model: two small evaluations, printed with `-s` (CO-4).

The first is handwritten: information of a travel company, searched in other words. The second searches pages of
documentation in `own_documents/`. Search is deterministic, so the bounds are the measured values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.ports.memory.documents import NewDocument, Owned, Passage
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
        first: share of questions whose passage is the first result.
        recall: share of questions whose passage is among the first ten.
        reciprocal: mean reciprocal rank.
    """

    first: float
    recall: float
    reciprocal: float


async def measure(documents: dict[str, str], questions: Iterable[tuple[str, str, str]]) -> Quality:
    """Search for each question. `questions`: each with the title and the section of its answer."""
    context = BusinessContext(MemoryDocuments(), HashingEmbedder())
    for title, text in documents.items():
        added = await context.documents.add(NewDocument(DEFAULT_TENANT, text, title=title))
        await context.embed(DEFAULT_TENANT, added.document_id)
    ranks: list[int] = []
    for question, title, section in questions:
        found = await context.search(Owned(DEFAULT_TENANT), question, limit=10)
        right = [one.title == title and is_of(one, section) for one in found]
        ranks.append(right.index(True) + 1 if any(right) else 0)
        if not any(right):
            print("missed:", question)
    quality = Quality(
        first=sum(rank == 1 for rank in ranks) / len(ranks),
        recall=sum(rank > 0 for rank in ranks) / len(ranks),
        reciprocal=sum(1 / rank for rank in ranks if rank) / len(ranks),
    )
    print(f"{len(documents)} documents, {len(ranks)} questions: {quality}")
    return quality


def is_of(passage: Passage, section: str) -> bool:
    return passage.text.partition("\n")[0].endswith(section)


async def test_questions_find_the_policy_that_answers_them() -> None:
    quality = await measure(POLICIES, ((question, title, "") for question, title in QUESTIONS.items()))
    assert quality.first >= 0.96
    assert quality.recall == 1.0


async def test_questions_find_the_section_of_our_documents() -> None:
    """CO-4: recall at ten and mean reciprocal rank."""
    pages = {f"{page.stem}.md": page.read_text() for page in sorted((HERE / "own_documents").iterdir())}
    asked = yaml.load((HERE / "own_documents.yaml").read_text(), yaml.CSafeLoader)
    questions = [
        (question, page, section)
        for page, sections in asked.items()
        for section, some in sections.items()
        for question in some
    ]
    quality = await measure(pages, questions)
    assert quality.recall >= 0.89
    assert quality.reciprocal >= 0.67
