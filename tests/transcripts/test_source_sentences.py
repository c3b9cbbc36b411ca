"""Quoted sentences of the source documents in conversations, judged by the store at the end.

The messages come from the documents; missing places and days were added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lab.evaluation.conversations import take_turns
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Simulator
from tests.cases import for_each
from tests.trained import trained

OFFER = {"user": "book a flight from oslo to rome on 3 december", "expect": {"ambiguity": "confirmation"}}
ROME = {"origin": "OSL", "destination": "FCO", "day": "2026-12-03", "status": "confirmed"}
FILLED = {"origin": "OSL", "destination": "FCO", "date": "2026-12-03"}
BOOKED: list[dict[str, Any]] = [
    OFFER,
    {
        "user": "yes",
        "expect": {
            "tools": ["flight_book"],
            "arguments": {"flight_book": {"offer_id": "OSL-FCO-2026-12-03-DY2992:economy:1"}},
            "completed": ["book_flight"],
        },
    },
]


class Quoted(NamedTuple):
    """A conversation, and the bookings at its end."""

    name: str
    turns: list[dict[str, Any]]
    stored: list[dict[str, Any]]


QUOTED = (
    Quoted(
        "a booking is interrupted, and gone on with",
        [
            *BOOKED,
            {
                "user": "I want to book a flight",
                "expect": {"flows": ["book_flight"], "answer": "Where would you like to fly from"},
            },
            {
                "user": "Actually, let me check my booking first",
                "expect": {
                    "completed": ["check_booking"],
                    "tools": ["booking_get"],
                    "flows": ["book_flight"],
                    "answer": "(?s)is confirmed.*Back to booking a flight. Where would you like to fly from",
                },
            },
            {"user": "Yes", "expect": {"tools": [], "answer": "Where would you like to fly from"}},
            {"user": "Oslo", "expect": {"slots": {"origin": "OSL"}}},
        ],
        [ROME],
    ),
    Quoted(
        "a reference that is none, and the way back",
        [
            {"user": "I want to book a flight", "expect": {"flows": ["book_flight"]}},
            {"user": "BK-12345", "expect": {"tools": [], "slots": {}, "not_answer": "passengers"}},
            {
                "user": "Actually, let me check my booking first",
                "expect": {"flows": ["book_flight", "check_booking"], "answer": "booking reference"},
            },
            {"user": "BK-12345", "expect": {"tools": [], "answer": "valid booking reference.*six letters and digits"}},
            {"user": "Go back to booking", "expect": {"kind": "resumption", "flow": "book_flight"}},
        ],
        [],
    ),
    Quoted(
        "which booking to go back to",
        [
            {"user": "book a flight to rome", "expect": {"flows": ["book_flight"]}},
            {"user": "Check my booking", "expect": {"flows": ["book_flight", "check_booking"]}},
            {"user": "change my booking", "expect": {"flow": "modify_booking"}},
            {"user": "Go back to booking", "expect": {"kind": "resumption", "ambiguity": "partial"}},
            {"user": "2", "expect": {"flow": "book_flight", "slots": {"destination": "FCO"}}},
        ],
        [],
    ),
    Quoted(
        "that booking is the one just looked up",
        [
            *BOOKED,
            {"user": "Check my booking", "expect": {"tools": ["booking_get"], "answer": "is confirmed"}},
            {
                "user": "I want to modify that booking",
                "expect": {"flow": "modify_booking", "tools": [], "answer": "What would you like to change"},
            },
            {
                "user": "7 december",
                "expect": {
                    "slots": {"new_date": "2026-12-07"},
                    "tools": ["booking_quote"],
                    "arguments": {"booking_quote": {"new_date": "2026-12-07"}},
                    "ambiguity": "confirmation",
                },
            },
            {"user": "yes", "expect": {"completed": ["modify_booking"], "tools": ["booking_modify"]}},
        ],
        [{**ROME, "day": "2026-12-07"}],
    ),
    Quoted(
        "digressions change nothing",
        [
            {"user": "book a flight to madrid", "expect": {"flows": ["book_flight"]}},
            {
                "user": "What cities do you support?",
                "expect": {"kind": "digression", "tools": [], "answer": "(?s)airport.*fly from"},
            },
            {"user": "oslo", "expect": {"slots": {"origin": "OSL"}, "answer": "[Ww]hat day"}},
            {
                "user": "Why do you need my date?",
                "expect": {"kind": "digression", "answer": "(?s)differ from day to day.*[Ww]hat day"},
            },
            {"user": "How does this work?", "expect": {"kind": "digression", "answer": "(?s)search for.*[Ww]hat day"}},
            {
                "user": "What information do you still need?",
                "expect": {"kind": "digression", "answer": "I still need the day of travel", "tools": []},
            },
            {"user": "3 december", "expect": {"slots": {**FILLED, "destination": "MAD"}, "ambiguity": "confirmation"}},
            {"user": "yes", "expect": {"completed": ["book_flight"], "tools": ["flight_book"]}},
        ],
        [{**ROME, "destination": "MAD"}],
    ),
    Quoted(
        "cancelled before anything is booked",
        [OFFER, {"user": "Actually, I want to cancel", "expect": {"kind": "cancellation", "flows": [], "tools": []}}],
        [],
    ),
    Quoted(
        "cancelled after it was booked",
        [
            *BOOKED,
            {
                "user": "Actually, I want to cancel",
                "expect": {"flow": "cancel_booking", "tools": ["booking_review"], "ambiguity": "confirmation"},
            },
            {"user": "yes", "expect": {"completed": ["cancel_booking"], "tools": ["booking_cancel"]}},
        ],
        [{**ROME, "status": "cancelled"}],
    ),
    Quoted(
        "a different flight is not the one that was offered",
        [
            OFFER,
            {
                "user": "Book a different flight",
                "expect": {"tools": [], "slots": FILLED, "answer": "What would you like to change"},
            },
            {"user": "to paris", "expect": {"slots": {**FILLED, "destination": "CDG"}, "ambiguity": "confirmation"}},
            {"user": "yes", "expect": {"tools": ["flight_book"]}},
        ],
        [{**ROME, "destination": "CDG"}],
    ),
    Quoted(
        "a different flight is another one than was booked",
        [*BOOKED, {"user": "Book a different flight", "expect": {"flows": ["book_flight"], "tools": [], "slots": {}}}],
        [ROME],
    ),
)  # fmt: skip


@for_each("quoted", QUOTED, ids=lambda quoted: quoted.name)
async def test_what_the_documents_quote_comes_out_as_they_say(quoted: Quoted) -> None:
    """FS-7, FS-9, IR-1, IR-2, IR-3, NL-2."""
    loaded, system1 = trained("travel")
    simulator = Simulator.of(loaded, system1=system1)

    outcomes = await take_turns(ConversationEntry.model_validate({"turns": quoted.turns}), simulator)

    for one in outcomes:
        assert not one.faults, f"{one.said}: {one.faults}\nreply: {one.observed['answer']}"
    records = simulator.records.get(DEFAULT_TENANT)
    found = [] if records is None else await records.find("bookings", {}, limit=100)
    assert [{name: row[name] for name in ROME} for row in found] == quoted.stored
