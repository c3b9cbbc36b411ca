"""Annotated dialogues as a domain, taken through the runtime: whose calls are compared with the annotated ones."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from orchestrator.nlu.grounding import Grounding
from parley.evaluation.dialogues.annotated import Mistaken
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
            {"name": "city", "description": "city where the restaurant is"},
            {"name": "cuisine", "description": "kind of food"},
            {"name": "street", "description": "address of the restaurant"},
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
    },
    {
        "service_name": "Taxis_1",
        "description": "Calls taxis",
        "slots": [
            {"name": "destination", "description": "Destination for the taxi ride"},
            {
                "name": "riders",
                "description": "Number of riders",
                "is_categorical": True,
                "possible_values": ["1", "2"],
            },
        ],
        "intents": [
            {
                "name": "CallTaxi",
                "description": "Call a taxi",
                "is_transactional": True,
                "required_slots": ["destination", "riders"],
                "optional_slots": {},
                "result_slots": ["destination", "riders"],
            }
        ],
    },
    {
        "service_name": "Hotels_1",
        "description": "Finds hotels",
        "slots": [
            {"name": "town", "description": "city where the hotel is"},
            {"name": "hotel", "description": "name of the hotel"},
        ],
        "intents": [
            {
                "name": "FindHotel",
                "description": "Find a hotel",
                "is_transactional": False,
                "required_slots": ["town"],
                "optional_slots": {},
                "result_slots": ["town", "hotel"],
            }
        ],
    },
]


def act(name: str, slot: str = "", value: str = "", canonical: str = "") -> dict[str, Any]:
    values = [value] if value else []
    return {
        "act": name,
        "slot": slot,
        "values": values,
        "canonical_values": [canonical or value] if value else [],
    }


def user(
    text: str, intent: str, known: dict[str, str], *acts: dict[str, Any], service: str = "Tables_1"
) -> dict[str, Any]:
    state = {"active_intent": intent, "slot_values": {slot: [value] for slot, value in known.items()}}
    return {
        "speaker": "USER",
        "utterance": text,
        "frames": [{"service": service, "actions": acts, "state": state}],
    }


def system(
    text: str, *acts: dict[str, Any], call: Any = None, rows: Any = (), service: str = "Tables_1"
) -> dict[str, Any]:
    frame: dict[str, Any] = {"service": service, "actions": acts}
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


RIDE = {"destination": "Mill Lane 3", "riders": "2"}
REFERRING = {
    "dialogue_id": "1_2",
    "services": ["Tables_1", "Taxis_1", "Hotels_1"],
    "turns": [
        user("I want to eat Greek food in Oslo", "FindTable", FOUND, act("INFORM_INTENT", "intent", "FindTable"),
             act("INFORM", "city", "Oslo"), act("INFORM", "cuisine", "Greek")),
        system("How about Olive Tree?", act("OFFER", "name", "Olive Tree"), call=("FindTable", FOUND), rows=ROWS),
        user("Is there anything else?", "FindTable", FOUND, act("REQUEST_ALTS")),
        system("There is Old Mill.", act("OFFER", "name", "Old Mill")),
        user("What is the street?", "FindTable", FOUND, act("REQUEST", "street")),
        system("Mill Lane 3.", act("INFORM", "street", "Mill Lane 3")),
        user("Great, sounds excellent!", "FindTable", TAKEN, act("SELECT")),
        system("Shall I book it?", act("OFFER_INTENT", "intent", "BookTable")),
        user("Yes, at seven", "BookTable", {**TAKEN, "time": "seven"}, act("AFFIRM_INTENT"),
             act("INFORM", "time", "seven", "19:00")),
        system("Old Mill at seven then?", act("CONFIRM", "time", "seven", "19:00")),
        user("Yes, that's right.", "BookTable", {**TAKEN, "time": "seven"}, act("AFFIRM")),
        system("Booked.", act("NOTIFY_SUCCESS"), call=("BookTable", BOOKED), rows=[BOOKED]),
        user("I also need a hotel there.", "FindHotel", {"town": "Oslo"}, act("INFORM_INTENT", "intent", "FindHotel"),
             service="Hotels_1"),
        system("Found one.", call=("FindHotel", {"town": "Oslo"}), rows=[{"town": "Oslo", "hotel": "Fjord"}],
               service="Hotels_1"),
        user("And a taxi to the restaurant for two", "CallTaxi", RIDE, act("INFORM_INTENT", "intent", "CallTaxi"),
             act("INFORM", "riders", "2"), service="Taxis_1"),
        system("To Mill Lane 3 for two?", act("CONFIRM", "riders", "2"), service="Taxis_1"),
        user("Yes please.", "CallTaxi", RIDE, act("AFFIRM"), service="Taxis_1"),
        system("It comes.", act("NOTIFY_SUCCESS"), call=("CallTaxi", RIDE), rows=[RIDE], service="Taxis_1"),
    ],
}  # fmt: skip


OTHERS = {
    "dialogue_id": "1_3",
    "services": ["Tables_1"],
    "turns": [
        user("I want to eat in Oslo", "FindTable", {"city": "Oslo"}, act("INFORM_INTENT", "intent", "FindTable"),
             act("INFORM", "city", "Oslo")),
        system("How about Olive Tree?", act("OFFER", "name", "Olive Tree"), call=("FindTable", {"city": "Oslo"}),
               rows=ROWS),
        user("Do you have any other places? Greek food would be great", "FindTable", FOUND, act("REQUEST_ALTS"),
             act("INFORM", "cuisine", "Greek")),
        system("There is Old Mill.", act("OFFER", "name", "Old Mill"), call=("FindTable", FOUND), rows=ROWS),
        user("Great, sounds excellent!", "FindTable", TAKEN, act("SELECT")),
        *REFERRING["turns"][7:12],
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
    data: Path,
    folder: Path,
    told: Telling = Telling.NEW,
    mistaken: float = 0.0,
    by: By = By.ANNOTATIONS,
) -> dict[str, Any]:
    figures, report = await drive(
        data / "schema.json",
        data / "dialogues.jsonl",
        folder=folder,
        by=by,
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
    assert figures["asked"] == 1.0


async def test_where_system_1_is_sure_the_annotations_are_not_asked(data: Path, tmp_path: Path) -> None:
    figures = await measure(data, tmp_path, by=By.AUTO)
    assert 0.0 < figures["asked"] < 1.0
    assert figures["misses"] == []
    assert (figures["made_annotated"], figures["reached"]) == (1.0, 1.0)


async def test_what_was_shown_or_said_before_is_found_by_the_runtime(data: Path, tmp_path: Path) -> None:
    """IR-5, FS-7: another row, also of another search, its street, its choice, "there", and where a taxi goes."""
    (data / "dialogues.jsonl").write_bytes(orjson.dumps(REFERRING) + b"\n" + orjson.dumps(OTHERS))
    figures = await measure(data, tmp_path, Telling.SAID)
    assert figures["misses"] == []
    assert (figures["exact_at_turn"], figures["made_annotated"], figures["annotated_calls"]) == (1.0, 1.0, 7)


ELSEWHERE = [
    *REFERRING["turns"][:12],
    user("I also need a hotel.", "FindHotel", {}, act("INFORM_INTENT", "intent", "FindHotel"), service="Hotels_1"),
    system("Where?", act("REQUEST", "town"), service="Hotels_1"),
    user("Bergen, please", "FindHotel", {"town": "Bergen"}, act("INFORM", "town", "Bergen"), service="Hotels_1"),
    system("Found one.", call=("FindHotel", {"town": "Bergen"}), rows=[{"town": "Bergen", "hotel": "Quay"}],
           service="Hotels_1"),
]  # fmt: skip


async def test_what_a_model_leaves_open_that_finds_references_itself_is_asked_for(
    data: Path, tmp_path: Path
) -> None:
    """FS-7: it has named the restaurant that the user only chose; a hotel may be in any town then."""
    (data / "dialogues.jsonl").write_bytes(orjson.dumps({**REFERRING, "turns": ELSEWHERE}))
    figures = await measure(data, tmp_path)
    assert figures["misses"] == []
    assert (figures["made_annotated"], figures["annotated_calls"]) == (1.0, 3)


@pytest.mark.parametrize(
    ("turn", "mistake"),
    [
        (1, {"kind": "denial"}),
        (1, {"flows": [{"dact": "call_taxi_taxis_1", "score": 0.9}]}),
        (1, {"slots": {"city": "Greek", "cuisine": "Oslo"}}),
        (6, {"kind": "denial"}),
        (6, {"kind": "task", "flows": [{"dact": "call_taxi_taxis_1", "score": 0.9}]}),
        (6, {"kind": "cancellation"}),
    ],
    ids=["no request", "another request", "exchanged", "no yes", "a request in place of a yes", "no more"],
)
async def test_what_a_model_gets_wrong_is_mended_by_the_words(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int, mistake: dict[str, Any]
) -> None:
    """PX-18, NL-7: a request and a plain yes are read in what the user says."""
    (data / "dialogues.jsonl").write_bytes(orjson.dumps({**REFERRING, "turns": REFERRING["turns"][:12]}))
    turns = count(1)
    monkeypatch.setattr(
        Mistaken, "distort", lambda _self, meant: {**meant, **(mistake if next(turns) == turn else {})}
    )
    figures = await measure(data, tmp_path)
    assert figures["misses"] == []
    assert (figures["made_annotated"], figures["reached"]) == (1.0, 1.0)


FEWER = {"destination": "Mill Lane 3", "riders": "1"}
CHANGED = [
    *REFERRING["turns"][:16],
    user("Actually could I have one rider", "CallTaxi", FEWER, act("INFORM", "riders", "1"), service="Taxis_1"),
    system("To Mill Lane 3 for one?", act("CONFIRM", "riders", "1"), service="Taxis_1"),
    user("Yes please.", "CallTaxi", FEWER, act("AFFIRM"), service="Taxis_1"),
    system("It comes.", act("NOTIFY_SUCCESS"), call=("CallTaxi", FEWER), rows=[FEWER], service="Taxis_1"),
]  # fmt: skip


async def test_a_listed_number_is_changed_before_the_yes(data: Path, tmp_path: Path) -> None:
    """PX-18: a turn that breaks there would leave the old number to be agreed to."""
    (data / "dialogues.jsonl").write_bytes(orjson.dumps({**REFERRING, "turns": CHANGED}))
    figures = await measure(data, tmp_path)
    assert (figures["misses"], figures["unfounded_transactions"]) == ([], 0)


@pytest.mark.parametrize("is_planted", [False, True])
async def test_a_wrong_understanding_books_nothing_unasked(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_planted: bool
) -> None:
    """PX-18: and it would, if a model could name what nobody has said."""
    several = [{**REFERRING, "dialogue_id": f"{place}_{place}"} for place in range(6)]
    (data / "dialogues.jsonl").write_bytes(b"\n".join(orjson.dumps(one) for one in several))
    if is_planted:
        monkeypatch.setattr(Grounding, "is_founded", lambda *_given: True)
    figures = await measure(data, tmp_path, mistaken=0.5)
    assert figures["exact_ever"] < 1.0
    assert (figures["unfounded_transactions"] > 0) is is_planted


def test_the_command_prints_the_figures(data: Path, tmp_path: Path) -> None:
    ended = CliRunner().invoke(
        app, ["eval", str(data), "--as", "runtime", "--data-dir", str(tmp_path), "--json"]
    )
    assert ended.exit_code == 0, ended.output
    assert orjson.loads(ended.stdout)["exact_ever"] == 1.0
