"""A small domain of flights for NLU tests, and contexts for messages."""

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache

from orchestrator.dialogue.questions import Option
from orchestrator.dialogue.specification import Family, FlowSpec, Priority, SlotSpec
from orchestrator.dialogue.understanding import Digression, Understanding
from orchestrator.domain.model import Answer, Entity, EntityValue
from orchestrator.nlu.nlu_context import NluContext, OpenQuestion
from orchestrator.nlu.protocol import Reading
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.text import clean

TODAY = date(2026, 11, 20)  # a Friday
AIRPORTS = Entity(
    "airport",
    (
        EntityValue("OSL", "Oslo", ("Oslo Gardermoen",)),
        EntityValue("MAD", "Madrid"),
        EntityValue("LIS", "Lisbon", ("Lisboa",)),
        EntityValue("OPO", "Porto"),
        EntityValue("LHR", "Heathrow", ("London",), {"main": True}),
        EntityValue("LGW", "Gatwick", ("London",)),
        EntityValue("SJO", "San Jose"),
        EntityValue("SJC", "San Jose"),
        EntityValue("GRU", "São Paulo"),
    ),
)
_PLACES = {
    "origin": SlotSpec("origin", "source", Priority.REQUIRED, entity="airport"),
    "destination": SlotSpec("destination", "target", Priority.REQUIRED, entity="airport"),
    "date": SlotSpec("date", "date", Priority.REQUIRED),
}
BOOK = FlowSpec(
    "book_flight",
    "02B",
    "Book",
    Family.TRANSFORM,
    "Book a flight",
    (
        "book a flight from {origin} to {destination}",
        "I want to fly to {destination} on {date}",
        "I need a flight to {destination}",
        "get me a ticket to {destination} for {passengers} people",
        "reserve a seat to {destination} in {cabin}",
    ),
    {
        **_PLACES,
        "cabin": SlotSpec(
            "cabin", "category", values=("economy", "business"), synonyms={"premium": "business"}
        ),
        "passengers": SlotSpec("passengers", "level", minimum=1, maximum=9),
        "wifi": SlotSpec("wifi", "boolean"),
        "note": SlotSpec("note", "free_text"),
        "budget": SlotSpec("budget", "money"),
    },
    edge_flows=("search_flights",),
    fallback="search_flights",
)
SEARCH = FlowSpec(
    "search_flights",
    "001",
    "Find",
    Family.READ,
    "Find flights",
    (
        "find flights from {origin} to {destination}",
        "which flights go to {destination} on {date}",
        "show me flights to {destination}",
        "are there any flights from {origin}",
    ),
    _PLACES,
)
CHECK = FlowSpec(
    "check_booking",
    "002",
    "Find",
    Family.READ,
    "Look up a booking",
    ("check my booking {ref}", "what is the status of my booking", "look up reservation {ref}"),
    {"ref": SlotSpec("ref", "exact")},
)
CANCEL = FlowSpec(
    "cancel_booking",
    "00F",
    "Book",
    Family.TRANSFORM,
    "Cancel a booking",
    ("cancel my booking {ref}", "I want to cancel my flight", "please cancel reservation {ref}"),
    {"ref": SlotSpec("ref", "exact")},
)
FLOWS = (BOOK, SEARCH, CHECK, CANCEL)
ANSWERS = (
    Answer(
        "baggage",
        ("how much baggage can I take", "what is the luggage limit"),
        "One bag.",
        Digression.QUESTION,
    ),
)


@cache
def system1() -> System1:
    return System1.train(FLOWS, {"airport": AIRPORTS}, ANSWERS)


def nothing_open() -> NluContext:
    return NluContext(TODAY)


def booking(*, asked: str = "date", options: tuple[Option, ...] = (), **changes: object) -> NluContext:
    """Return a context with an active booking from Oslo to Madrid whose date was requested."""
    context = NluContext(
        TODAY, BOOK, {"origin": "OSL", "destination": "MAD"}, OpenQuestion(asked, options=options)
    )
    return replace(context, **changes)


def confirming() -> NluContext:
    values = {"origin": "OSL", "destination": "MAD", "date": "2026-11-21", "cabin": "economy"}
    return NluContext(TODAY, BOOK, values, OpenQuestion(confirming=True))


def understand(text: str, context: NluContext | None = None) -> Understanding:
    return system1().think(clean(text), context or nothing_open()).understanding


def at_once(reading: Coroutine[object, None, Reading | None]) -> Reading | None:
    """Run a coroutine that never waits."""
    try:
        reading.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the reader waits")


def values(understanding: Understanding) -> dict[str, object]:
    return {name: mention.value for name, mention in understanding.slots.items()}


@dataclass
class FakeTurn:
    """The parts of a turn that NLU uses: a clock and a receiver of signals."""

    local_now: float = 1_795_132_800.0  # 2026-11-20
    locale: str = "en"
    signals: list[tuple[str, object]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def log(self) -> "FakeTurn":
        return self

    def signal(self, source: str, kind: object, flow_id: object = None, **payload: object) -> None:
        self.signals.append((str(kind), payload))

    def failed_check(self, module: str, name: str, why: str, flow_id: object = None) -> None:
        self.failed.append((name, why))
