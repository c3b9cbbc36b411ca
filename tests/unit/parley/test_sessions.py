"""PL-4, PL-6: plans as printed by `parley show`."""

from __future__ import annotations

from parley.commands.gateway.sessions import describe_plan


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
