"""IR-5: references to displayed rows, by the fields in the manifest."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.records import Shown
from orchestrator.domain.tool_schema import FieldSpec, RowsSpec
from orchestrator.nlu.system1.references import Message, find_reference
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact, Json, ToolId
from tests.wording import english

ROOMS = Shown(
    ToolId("room_list"),
    Dact("find_rooms"),
    "room_id",
    [
        {"room_id": "r1", "name": "Attic", "opens": "09:00", "price": 80},
        {"room_id": "r2", "name": "Garden Room", "opens": "08:00", "price": 120},
        {"room_id": "r3", "name": "Attic", "opens": "14:30", "price": 60},
    ],
)
SPEC = RowsSpec(
    output="rooms",
    key="room_id",
    fields={
        "name": FieldSpec(),
        "opens": FieldSpec(less=("earlier", "earliest"), more=("later", "latest")),
        "price": FieldSpec(less=("cheaper", "cheapest"), more=("dearer", "most expensive")),
    },
)


def refer(said: str, current: Json = None) -> list[str] | str | None:
    found = find_reference(Message(tokenize(said), ROOMS, SPEC, current))
    return None if found is None else english(found.why) or [row["room_id"] for row in found.rows]


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ("the second one", ["r2"]),
        ("I'll take the last one please", ["r3"]),
        ("book number 2", ["r2"]),
        ("option 3", ["r3"]),
        ("2", ["r2"]),
        ("the garden room", ["r2"]),
        ("the attic one", ["r1", "r3"]),
        ("the one at 14:30", ["r3"]),
        ("the one at 9:00", ["r1"]),
        ("the cheapest", ["r3"]),
        ("the most expensive one", ["r2"]),
    ],
)
def test_a_row_is_named(said: str, rows: list[str]) -> None:
    assert refer(said) == rows


def test_a_comparison_goes_from_the_row_that_is_talked_about() -> None:
    assert refer("cheaper please", "r2") == ["r1"]
    assert refer("later", "r2") == ["r1"]
    assert refer("is there a cheaper one?", "r3") == "None of the ones I showed you is cheaper."


def test_what_fits_no_row_is_said() -> None:
    assert refer("the fifth one") == "There are only 3 to choose from."


@pytest.mark.parametrize(
    "said", ["book it for two", "for 3 people", "find rooms in Oslo", "yes", "thank you"]
)
def test_other_words_refer_to_no_row(said: str) -> None:
    assert refer(said) is None
