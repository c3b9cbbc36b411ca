"""PL-4, PL-6: plans as printed by `parley show`."""

from __future__ import annotations

from parley.commands.gateway.sessions import describe_comparison
from parley.terminal.words import describe_plan


def test_a_plan_is_shown_with_its_progress_and_every_step() -> None:
    plan = {
        "dact": "plan_trip",
        "goal": "a weekend in Lisbon",
        "state": "Pending",
        "reason": "planned",
        "revision": 3,
        "progress": "1 of 2",
        "steps": [
            {
                "purpose": "find flights",
                "dact": "search_flights",
                "state": "Completed",
                "reason": None,
                "note": "",
            },
            {
                "purpose": "find a hotel",
                "dact": "find_hotel",
                "state": "Invalid",
                "reason": "pruned",
                "note": "full",
            },
            {"purpose": "book", "dact": "book_flight", "state": "Pending", "reason": "planned", "note": ""},
        ],
    }
    assert [line.split(maxsplit=1)[1].strip() for line in describe_plan(plan)] == [
        "plan_trip (Pending, planned), 1 of 2 done, revision 3",
        "a weekend in Lisbon",
        "1       find flights [search_flights] Completed",
        "2       find a hotel [find_hotel] pruned: full",
        "3       book [book_flight] planned",
    ]


def test_a_comparison_is_printed_turn_by_turn() -> None:
    """ST-4: with the messages and effects of both sides, and the differences."""
    turn = {"epoch": 3, "said": "yes", "reply": "Booked.", "flows": [], "completed": ["book_flight"]}
    call = {"tool_id": "flight_book", "arguments": {"offer_id": "o"}, "status": "ok"}
    waiting = {"dact": "book_flight", "state": "Active", "reason": None, "slots": {"origin": "OSL"}}
    found = {
        "left": "a",
        "right": "b",
        "common": {"session_id": "a", "epoch": 2},
        "turns": [
            {
                "left": {**turn, "tools": [call]},
                "right": {**turn, "reply": "Which?", "flows": [waiting], "completed": [], "tools": []},
                "differs": ["reply", "flows"],
            },
            {"left": None, "right": {**turn, "tools": []}, "differs": ["said"]},
        ],
        "effects": {"left": [call | {"status": "done"}], "right": []},
    }
    assert [" ".join(line.split()) for line in describe_comparison(found)] == [
        "left a",
        "right b",
        "shared version 2 of a",
        "",
        "Turn 1 after the shared history differs in reply, flows:",
        "left version 3 > yes",
        "Booked.",
        "completed book_flight",
        "call flight_book(offer_id=o) ok",
        "right version 3 > yes",
        "Which?",
        "flow book_flight (Active) origin=OSL",
        "",
        "Turn 2 after the shared history differs in said:",
        "left (no turn)",
        "right version 3 > yes",
        "Booked.",
        "completed book_flight",
        "left flight_book(offer_id=o) done, only in its ledger",
    ]
    assert describe_comparison({**found, "common": None})[2].endswith("nothing")
