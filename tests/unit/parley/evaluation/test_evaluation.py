"""`parley eval` on schema-guided dialogues: what is learnt from is never measured, and any file will do."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import InvalidInput
from parley.commands.evaluate import locate
from parley.evaluation.dialogues.dataset import State, read_dialogues, read_schema
from parley.evaluation.dialogues.drive import drive
from parley.evaluation.dialogues.metrics import (
    FrameScore,
    Prediction,
    expected_calibration_error,
    reliability,
    score_frame,
    summarize,
)
from parley.evaluation.dialogues.telling import By, Telling
from parley.evaluation.dialogues.tracker import DialogueTracker
from parley.evaluation.dialogues.tracking import evaluate, follow, learn, split

ROOT = Path(__file__).parents[4]
DATA = Path(os.environ.get("PARLEY_SHARED", ROOT.parent / "shared")) / "data" / "sgd"
needs_data = pytest.mark.skipif(
    not (DATA / "schema.json").exists(),
    reason="The dialogue sample is not beside the repository; set PARLEY_SHARED.",
)

SCHEMA = [
    {
        "service_name": "Taxi_1",
        "description": "Order a taxi",
        "slots": [
            {
                "name": "destination",
                "description": "Where to go",
                "is_categorical": False,
                "possible_values": [],
            },
            {
                "name": "riders",
                "description": "How many",
                "is_categorical": True,
                "possible_values": ["1", "2"],
            },
        ],
        "intents": [
            {
                "name": "OrderTaxi",
                "description": "Order a taxi",
                "required_slots": ["destination"],
                "optional_slots": {"riders": "1"},
            }
        ],
    }
]


def user(text: str, state: dict, acts: list, spans: list | None = None) -> dict:
    frame = {
        "service": "Taxi_1",
        "actions": acts,
        "slots": spans or [],
        "state": {"active_intent": "OrderTaxi", "slot_values": state, "requested_slots": []},
    }
    return {"speaker": "USER", "utterance": text, "frames": [frame]}


def dialogue(name: str, place: str) -> dict:
    text = f"Order a taxi to {place}"
    start = len("Order a taxi to ")
    acts = [{"act": "INFORM_INTENT", "slot": "intent", "values": ["OrderTaxi"]}]
    spans = [{"slot": "destination", "start": start, "exclusive_end": len(text)}]
    return {
        "dialogue_id": name,
        "services": ["Taxi_1"],
        "turns": [user(text, {"destination": [place]}, acts, spans)],
    }


def write(folder: Path, *dialogues: dict) -> tuple[Path, Path]:
    schema, lines = folder / "schema.json", folder / "dialogues.jsonl"
    schema.write_text(json.dumps(SCHEMA))
    lines.write_text("\n".join(json.dumps(body) for body in dialogues))
    return schema, lines


def test_a_small_file_of_an_unknown_service_is_measured(tmp_path: Path) -> None:
    schema, lines = write(
        tmp_path,
        *(dialogue(f"d{n}", place) for n, place in enumerate(["Mill Lane", "Old Port", "Pier Nine"])),
    )
    report = evaluate(schema, lines, folds=3)
    overall = report.figures()["overall"]
    assert overall["frames"] == 3
    assert overall["active_intent_accuracy"] == 1.0
    assert overall["joint_goal_accuracy"] > 0.9


def test_what_is_measured_is_never_learnt_from(tmp_path: Path) -> None:
    _schema, lines = write(tmp_path, *(dialogue(f"d{n}", "Mill Lane") for n in range(20)))
    dialogues = read_dialogues(lines)
    parts = split(dialogues, 5)
    measured = [one.identifier for part, _ in parts for one in part]
    assert sorted(measured) == sorted(one.identifier for one in dialogues)
    for part, learning in parts:
        assert not {one.identifier for one in part} & {one.identifier for one in learning}


def test_further_dialogues_to_learn_from_leave_out_the_measured_ones(tmp_path: Path) -> None:
    _schema, lines = write(tmp_path, dialogue("a", "Mill Lane"), dialogue("b", "Old Port"))
    (tmp_path / "one").mkdir()
    _schema, one = write(tmp_path / "one", dialogue("a", "Mill Lane"))
    ((measured, learning),) = split(read_dialogues(one), 5, lines)
    assert [d.identifier for d in measured] == ["a"]
    assert [d.identifier for d in learning] == ["b"]


def test_unknown_fields_and_missing_annotations_do_no_harm(tmp_path: Path) -> None:
    strange = {
        "dialogue_id": "odd",
        "mood": "good",
        "turns": [
            {"speaker": "USER", "utterance": "Order a taxi to Mill Lane", "frames": [{"service": "Taxi_1"}]},
            {"speaker": "SYSTEM", "utterance": "For how many?"},
            {
                "speaker": "USER",
                "utterance": "two",
                "frames": [{"service": "Unheard_9", "state": {}}, "noise"],
            },
            user("to Mill Lane", {"destination": ["Mill Lane"]}, []),
        ],
    }
    schema, lines = write(tmp_path, strange, dialogue("d1", "Old Port"))
    report = evaluate(schema, lines)
    assert set(report.services) == {"Taxi_1"}
    assert len(report.overall) == 2


def test_a_json_list_is_read_like_lines(tmp_path: Path) -> None:
    listed = tmp_path / "dialogues.json"
    listed.write_text(json.dumps([dialogue("a", "Mill Lane"), dialogue("b", "Old Port")]))
    assert [d.identifier for d in read_dialogues(listed)] == ["a", "b"]


@pytest.mark.parametrize("content", ["", "no json", "[]", '{"a": 1}\nnonsense'])
def test_a_file_of_another_format_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "dialogues.jsonl"
    path.write_text(content)
    if content.startswith("{"):
        with pytest.raises(InvalidInput, match="line 2"):
            read_dialogues(path)
    else:
        with pytest.raises(InvalidInput):
            read_dialogues(path)


def test_a_missing_file_and_a_missing_argument_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_schema(tmp_path / "nothing.json")
    with pytest.raises(InvalidInput, match="--schema"):
        locate(None, None, tmp_path)


def test_the_measures_follow_the_datasets_definitions(tmp_path: Path) -> None:
    schema, _lines = write(tmp_path, dialogue("a", "Mill Lane"))
    service = read_schema(schema)["Taxi_1"]
    values = {"destination": ("Mill Lane", "the mill"), "riders": ("2",)}
    reference = State(active_intent="OrderTaxi", slot_values=values)

    def score(**state: str):
        return score_frame(service, reference, {}, Prediction("OrderTaxi", state), {})

    assert score(destination="lane mill", riders="2").joint == 1.0
    half = score(destination="the mill")
    assert (half.joint, half.average) == (0.0, 0.5)
    assert score(destination="Mill Lane", riders="1").joint == 0.0
    assert summarize([score(destination="Mill Lane", riders="2")])["slot_f1"] == 1.0


def test_requests_are_measured_as_the_datasets_script_does(tmp_path: Path) -> None:
    schema, _lines = write(tmp_path, dialogue("a", "Mill Lane"))
    service = read_schema(schema)["Taxi_1"]

    def measure(wanted: list[str], found: set[str]):
        prediction = Prediction("OrderTaxi", {}, frozenset(found))
        return summarize([score_frame(service, State(requested_slots=wanted), {}, prediction, {})])

    assert measure([], set())["requested_slots_f1"] == 1.0
    assert measure([], set())["requested_slots_f1_where_asked"] is None
    assert measure(["riders"], set())["requested_slots_f1"] == 0.0
    assert measure(["riders"], {"riders"})["requested_slots_f1_where_asked"] == 1.0


def test_calibration_compares_what_was_held_likely_with_what_came_true() -> None:
    """Four frames held to be nine in ten likely, of which two are right: forty points off."""
    scores = [FrameScore(float(right), None, 0.0, None, (0, 0, 0), 0.9) for right in (1, 0, 1, 0)]
    sure = [FrameScore(1.0, None, 0.0, None, (0, 0, 0), 1.0)] * 4
    assert expected_calibration_error(scores) == 0.4
    assert expected_calibration_error(sure) == 0.0
    assert [(one.frames, one.right) for one in reliability([*scores, *sure])] == [(8, 0.75)]
    assert expected_calibration_error([]) is None


MOST_CALLS = 400
"""Of a tracked turn that begins a task: whatever the machine, they grow with what is looked at twice."""


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls, of Python's functions and of others, that some work takes."""
    calls = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def hotel_after_flight(name: str, city: str) -> dict:
    """A dialogue that goes on in the city that it has flown to."""

    def turn(text: str, service: str, intent: str, state: dict, acts: list, spans: list) -> dict:
        frame = {"service": service, "actions": acts, "slots": spans,
                 "state": {"active_intent": intent, "slot_values": state, "requested_slots": []}}  # fmt: skip
        return {"speaker": "USER", "utterance": text, "frames": [frame]}

    text = f"Find a flight to {city}"
    said = [{"act": "INFORM_INTENT", "slot": "intent", "values": ["FindFlight"]},
            {"act": "INFORM", "slot": "arrival", "values": [city]}]  # fmt: skip
    span = [{"slot": "arrival", "start": len(text) - len(city), "exclusive_end": len(text)}]
    then = [{"act": "INFORM_INTENT", "slot": "intent", "values": ["FindHotel"]}]
    return {
        "dialogue_id": name,
        "services": ["Flights_1", "Hotels_1"],
        "turns": [
            turn(text, "Flights_1", "FindFlight", {"arrival": [city]}, said, span),
            {"speaker": "SYSTEM", "utterance": "There is one at noon.", "frames": []},
            turn("I need a hotel there too", "Hotels_1", "FindHotel", {"town": [city]}, then, []),
        ],
    }


def test_a_task_takes_over_what_was_said_to_another_service(tmp_path: Path) -> None:
    """The city is in none of the dialogues that were learnt from, and no slot has the other's name."""
    schema = [
        {"service_name": service, "slots": [{"name": slot, "is_categorical": False, "possible_values": []}],
         "intents": [{"name": intent, "required_slots": [slot], "optional_slots": {}}]}
        for service, slot, intent in (("Flights_1", "arrival", "FindFlight"), ("Hotels_1", "town", "FindHotel"))
    ]  # fmt: skip
    cities = ["Oslo", "Rome", "Paris", "Madrid", "Vienna", "Bergen", "Lyon", "Ghent"]
    _, lines = write(tmp_path, *(hotel_after_flight(city, city) for city in cities))
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    learnt = learn(read_schema(tmp_path / "schema.json"), read_dialogues(lines))
    tracker = DialogueTracker(learnt)
    tracker.read_user("Find a flight to Lisbon", ["Flights_1"])
    tracker.read_system("There is one at noon.")
    calls = count_calls(lambda: tracker.read_user("I need a hotel there too", ["Hotels_1"]))
    assert calls < MOST_CALLS
    states = tracker.trackers
    assert states["Hotels_1"].state == {"town": "Lisbon"}
    assert states["Hotels_1"].intent == "FindHotel"


@needs_data
def test_the_sample_is_understood_better_than_by_chance() -> None:
    """A few dialogues of the largest service, measured with what the others teach."""
    services = read_schema(DATA / "schema.json")
    dialogues = [d for d in read_dialogues(DATA / "dialogues.jsonl") if d.services == ("Flights_3",)]
    measured, learning = dialogues[:3], dialogues[3:]
    learnt = learn({"Flights_3": services["Flights_3"]}, learning)
    figures = summarize([score for one in measured for _name, score in follow(learnt, one)])
    assert figures["active_intent_accuracy"] > 0.7
    assert figures["average_goal_accuracy"] > 0.5


def reach(by: By, dialogues: int, *marks: pytest.MarkDecorator, **least: float) -> object:
    return pytest.param(by, dialogues, least, marks=marks, id=f"{by}-{dialogues}")


FOUNDED = {"exact_ever": 0.98, "made_annotated": 0.98, "reached": 0.95}
GUESSED = {"exact_ever": 0.84, "made_annotated": 0.9, "reached": 0.7}


@needs_data
@pytest.mark.parametrize(
    ("by", "dialogues", "least"),
    [
        reach(By.ANNOTATIONS, 8, **FOUNDED),
        reach(By.AUTO, 8, **GUESSED),
        reach(By.ANNOTATIONS, 24, pytest.mark.slow, **FOUNDED),
        reach(By.AUTO, 24, pytest.mark.slow, **GUESSED),
    ],
)
async def test_the_runtime_makes_the_calls_of_the_sample(
    by: By, dialogues: int, least: dict[str, float], tmp_path: Path
) -> None:
    """Of some dialogues, with a model that makes no mistake; under `auto` it is asked for fewer turns."""
    some = (DATA / "dialogues.jsonl").read_bytes().splitlines()[:dialogues]
    (tmp_path / "dialogues.jsonl").write_bytes(b"\n".join(some))
    figures, _ = await drive(
        DATA / "schema.json",
        tmp_path / "dialogues.jsonl",
        folder=tmp_path,
        by=by,
        model=None,
        told=Telling.NEW,
        mistaken=0.0,
        notice=lambda _line: None,
    )
    assert {name: figures[name] for name, bound in least.items() if figures[name] < bound} == {}
    assert figures["unfounded_transactions"] == 0
    assert figures["asked"] <= (0.65 if by is By.AUTO else 1.0)
