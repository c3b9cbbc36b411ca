"""`parley eval DOMAIN --simulate`: simulated users with goals from the domain, judged by the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.evaluation.conversations import Evaluated, Outcome, report_wrong
from lab.simulation.goals import Stock
from lab.simulation.running import Simulated, simulate
from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.nlu.system1 import System1
from orchestrator.pex.calls import guarded_call
from parley import JsonObject, ToolCall
from parley.commands.domain import scaffold
from parley.main import run
from parley.simulator import START
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script, ScriptedModel
from tests.trained import trained

ENOUGH = 30


async def hold(loaded: LoadedDomain, system1: System1, count: int = ENOUGH) -> list[Outcome]:
    return await simulate(Evaluated(loaded, system1), Simulated(count))


@pytest.mark.parametrize("domain", ["travel", "analytics", "lending"])
async def test_users_reach_their_goals(domain: str) -> None:
    outcomes = await hold(*trained(domain))

    assert list(report_wrong(outcomes)) == []
    names = " ".join(outcome.name for outcome in outcomes)
    assert "changes a value" in names
    assert "refuses the offer" in names


async def test_a_conversation_follows_from_its_seed() -> None:
    """Runs of any length start with the same conversations."""
    first, second = [
        [
            (outcome.name, [turn.said for turn in outcome.turns])
            for outcome in await hold(*trained("lending"), count)
        ]
        for count in (8, 12)
    ]

    assert first == second[:8]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return scaffold("notes", tmp_path)


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def store_another_topic(notes: Path) -> None:
    rewrite(notes / "services.py", '{"topic": topic, ', '{"topic": "home", ')


def cut_off_the_text(notes: Path) -> None:
    rewrite(notes / "services.py", '"body": body,', '"body": body[:6],')


def ask_forever(notes: Path) -> None:
    """Break the flow, so that users' answers are never valid values of the slot."""
    rewrite(notes / "ontology.yaml", "body: {type: free_text,", "body: {type: money, samples: [none],")


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (store_another_topic, "notes received {'topic': 'home'"),
        (cut_off_the_text, "note_create returned {"),
        (ask_forever, "add_note is not completed"),
    ],
)
async def test_a_planted_fault_is_found(notes: Path, plant: Callable[[Path], None], found: str) -> None:
    plant(notes)
    loaded = load_domain(notes)

    lines = [*report_wrong(await hold(loaded, System1.for_domain(loaded.domain), 10))]

    assert any(line.strip().startswith("wrong") and found in line for line in lines), lines


async def test_a_scaffolded_domain_has_nothing_wrong(notes: Path) -> None:
    loaded = load_domain(notes)

    assert list(report_wrong(await hold(loaded, System1.for_domain(loaded.domain)))) == []


async def test_a_booking_of_another_day_is_found() -> None:
    """The offer is right and the user agrees, but the service books another day."""
    loaded, system1 = trained("travel")
    bookings: Any = loaded.services["Bookings"]

    class Careless(bookings):
        async def book(self, *, offer_id: str, call: ToolCall, passenger_name: str = "") -> JsonObject:
            booked = await super().book(offer_id=offer_id, call=call, passenger_name=passenger_name)
            return {**booked, "day": "2027-01-01"}

    careless = replace(loaded, services={**loaded.services, "Bookings": Careless})
    lines = [*report_wrong(await hold(careless, system1, 5))]

    assert any("flight_book returned {" in line and "'day': '2027-01-01'" in line for line in lines), lines


async def test_a_call_without_a_confirmation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_call, "_asks_first", lambda _run, _tool: False)

    lines = [*report_wrong(await hold(*trained("lending"), 8))]

    assert "    wrong     loan_create was called without a confirmation" in lines


def test_a_flow_that_users_cannot_fill_is_named() -> None:
    """Flows that need a model are not drawn."""
    loaded, _ = trained("clinic")
    stock = Stock(loaded.domain, START.date(), has_model=False)

    assert stock.without == [
        "move_appointment: no goals, because code has no sample value; add `samples` for this slot."
    ]
    assert "move_appointment" not in [flow.dact for flow in stock.flows]


def test_the_command_prints_what_is_wrong_and_stores_the_run(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_another_topic(notes)
    place = ("--data-dir", str(tmp_path), "--simulate", "--budget", "6")

    assert run(["eval", str(notes), *place, "--fail-under", "1"]) == 1

    printed = capsys.readouterr().err.splitlines()
    start = next(i for i, line in enumerate(printed) if line.startswith("simulated: ") and "turn" in line)
    assert printed[start + 1].startswith("    said      ")
    assert printed[start + 2].startswith("    wrong     note_create returned {'topic': 'home'")
    (kept,) = (tmp_path / "evaluations" / "notes" / "simulated").glob("*.json")
    assert json.loads(kept.read_text())["conversations"] == 6


def test_services_are_reset_before_each_simulated_conversation(notes: Path, tmp_path: Path) -> None:
    resets = tmp_path / "resets"
    (notes / "evaluations").mkdir()
    (notes / "evaluations" / "reset.py").write_text(
        f"def reset():\n    with open({str(resets)!r}, 'a') as kept:\n        kept.write('once ')\n"
    )

    assert run(["eval", str(notes), "--data-dir", str(tmp_path), "--simulate", "--budget", "3"]) == 0

    assert resets.read_text() == "once once once "


def test_simulated_users_and_faults_exclude_each_other(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", str(notes), "--simulate", "--faults"]) == 1
    assert "either --faults or --simulate" in capsys.readouterr().err


def play_the_user(request: Request) -> Reply:
    """Answer like a model that plays a user who wants a note saved."""
    (given,) = request.user_messages
    says = [
        ("Shall I go ahead?", {"say": "yes", "means": "agree", "done": False}),
        ("What should I write down?", {"say": "water the plants", "means": "answer", "done": False}),
        ("assistant:", {"say": "", "means": "ask", "done": True}),
        ("", {"say": "write a note about work", "means": "ask", "done": False}),
    ]
    return Answer(json=next(answer for part, answer in says if part in given))


def test_a_model_plays_the_user(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulated user deviates from the goal, and the different note is found."""
    script = Script(rules=(Rule(prompt="eval_user", replies=(Computed(play_the_user),)),))
    with ScriptedModel(script) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        place = ("--data-dir", str(tmp_path), "--simulate", "--budget", "1", "--model", "small")
        run(["eval", str(notes), *place, "--json"])
        asked = model.requests_for("eval_user")

    (found,) = json.loads(capsys.readouterr().out)["outcomes"]
    assert [turn["said"] for turn in found["turns"]] == ["write a note about work", "water the plants", "yes"]
    assert "Write down a note about a topic" in str(asked[0].messages)
    assert any("note_create was called with" in fault for fault in found["turns"][-1]["faults"])
