"""Annotated dialogues as a domain, taken through the runtime: whose calls are compared with the annotated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from parley.evaluation.dialogues.drive import drive
from parley.evaluation.dialogues.telling import By, Telling
from parley.main import app

ROWS = [
    {"name": "Olive Tree", "city": "Oslo", "cuisine": "Greek", "street": "High Street 1", "seats": "40"},
    {"name": "Old Mill", "city": "Oslo", "cuisine": "Greek", "street": "Mill Lane 3", "seats": "12"},
]
SCHEMA = [
    {
        "service_name": "Tables_1",
        "description": "Finds restaurants and books tables",
        "slots": [
            {"name": "name", "description": "name of the restaurant"},
            {"name": "city", "description": "city of the restaurant"},
            {"name": "cuisine", "description": "kind of food"},
            {"name": "street", "description": "address"},
            {"name": "seats", "description": "seats there are"},
            {"name": "time", "description": "time of the booking"},
            {
                "name": "party_size",
                "description": "people",
                "is_categorical": True,
                "possible_values": ["1", "2", "3"],
            },
        ],
        "intents": [
            {
                "name": "FindTable",
                "description": "Find a restaurant",
                "is_transactional": False,
                "required_slots": ["city"],
                "optional_slots": {"cuisine": "dontcare"},
                "result_slots": ["name", "city", "cuisine", "street", "seats"],
            },
            {
                "name": "BookTable",
                "description": "Book a table",
                "is_transactional": True,
                "required_slots": ["name", "city", "time"],
                "optional_slots": {"party_size": "2"},
                "result_slots": ["name", "city", "time", "party_size"],
            },
        ],
    }
]


def act(name: str, slot: str = "", value: str = "", canonical: str = "") -> dict[str, Any]:
    values = [value] if value else []
    return {
        "act": name,
        "slot": slot,
        "values": values,
        "canonical_values": [canonical or value] if value else [],
    }


def user(text: str, intent: str, known: dict[str, str], *acts: dict[str, Any]) -> dict[str, Any]:
    state = {"active_intent": intent, "slot_values": {slot: [value] for slot, value in known.items()}}
    return {
        "speaker": "USER",
        "utterance": text,
        "frames": [{"service": "Tables_1", "actions": acts, "state": state}],
    }


def system(text: str, *acts: dict[str, Any], call: Any = None, rows: Any = ()) -> dict[str, Any]:
    frame: dict[str, Any] = {"service": "Tables_1", "actions": acts}
    if call is not None:
        frame |= {"service_call": {"method": call[0], "parameters": call[1]}, "service_results": list(rows)}
    return {"speaker": "SYSTEM", "utterance": text, "frames": [frame]}


FOUND = {"city": "Oslo", "cuisine": "Greek"}
TAKEN = {**FOUND, "name": "Old Mill"}
BOOKED = {"name": "Old Mill", "city": "Oslo", "time": "19:00", "party_size": "2"}
DIALOGUE = {
    "dialogue_id": "1_1",
    "services": ["Tables_1"],
    "turns": [
        user("I want to eat Greek food in Oslo", "FindTable", FOUND, act("INFORM_INTENT", "intent", "FindTable"),
             act("INFORM", "city", "Oslo"), act("INFORM", "cuisine", "Greek")),
        system("How about Old Mill?", act("OFFER", "name", "Old Mill"), call=("FindTable", FOUND), rows=ROWS),
        user("Great, sounds excellent!", "FindTable", TAKEN, act("SELECT")),
        system("Shall I book it?", act("OFFER_INTENT", "intent", "BookTable")),
        user("Yes, for half past seven", "BookTable", {**TAKEN, "time": "half past seven"},
             act("AFFIRM_INTENT"), act("INFORM", "time", "half past seven", "19:30")),
        system("At half past seven then?", act("CONFIRM", "time", "half past seven", "19:30")),
        user("Yes, that's right. What is the street?", "BookTable", {**TAKEN, "time": "half past seven"},
             act("AFFIRM"), act("REQUEST", "street")),
        system("That is full. At seven?", act("NOTIFY_FAILURE"), act("OFFER", "time", "seven", "19:00"),
               call=("BookTable", {**BOOKED, "time": "19:30"}), rows=[BOOKED]),
        user("Ok, that works.", "BookTable", {**TAKEN, "time": "seven"}, act("AFFIRM")),
        system("Booked.", act("NOTIFY_SUCCESS"), call=("BookTable", BOOKED), rows=[BOOKED]),
    ],
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "schema.json").write_bytes(orjson.dumps(SCHEMA))
    (folder / "dialogues.jsonl").write_bytes(orjson.dumps(DIALOGUE) + b"\n")
    return folder


async def measure(
    data: Path, folder: Path, told: Telling = Telling.NEW, mistaken: float = 0.0
) -> dict[str, Any]:
    figures, report = await drive(
        data / "schema.json",
        data / "dialogues.jsonl",
        folder=folder,
        by=By.ANNOTATIONS,
        model=None,
        told=told,
        mistaken=mistaken,
        notice=lambda _line: None,
    )
    assert orjson.loads(report.read_bytes()) == figures
    return figures


@pytest.mark.parametrize("told", [Telling.NEW, Telling.RESTATED, Telling.AGREED, Telling.WORDS])
async def test_every_annotated_call_is_made_and_no_other(data: Path, tmp_path: Path, told: Telling) -> None:
    """A row chosen in any words, a yes that a question follows, and the alternative of a failed call."""
    figures = await measure(data, tmp_path, told)
    assert figures["misses"] == []
    assert (figures["exact_at_turn"], figures["made_annotated"], figures["reached"]) == (1.0, 1.0, 1.0)
    assert (figures["dialogues"], figures["turns"], figures["annotated_calls"]) == (1, 5, 3)


async def test_a_wrong_understanding_is_seen_and_books_nothing_unasked(data: Path, tmp_path: Path) -> None:
    figures = await measure(data, tmp_path, mistaken=1.0)
    assert figures["exact_ever"] < 1.0
    assert figures["kinds_of_misses"]
    assert figures["unfounded_transactions"] == 0


def test_the_command_prints_the_figures(data: Path, tmp_path: Path) -> None:
    ended = CliRunner().invoke(
        app, ["eval", str(data), "--as", "runtime", "--data-dir", str(tmp_path), "--json"]
    )
    assert ended.exit_code == 0, ended.output
    assert orjson.loads(ended.stdout)["exact_ever"] == 1.0
