"""A clinic domain created by the documentation, with appointments in an HTTP service."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.nlu.system1 import System1
from orchestrator.res.markup import to_plain
from parley.main import run
from parley.simulator import Simulator
from tests.conversation import scripted
from tests.integration.tools.clinic_service import Clinic
from tests.processes.http import serve
from tests.transcripts.recorded import Author
from tests.transcripts.test_transcripts_with_model import SYSTEM2

DENTAL = Path(__file__).parents[2] / "domains" / "dental"
ADDRESS = "http://127.0.0.1:8765"
DAY_S = 86_400.0
TALK = (
    ("hi", "How can I help you"),
    ("are you open on saturdays?", "Monday to Saturday"),
    ("how much is a cleaning", "€79"),
    ("and a filling?", "€120"),
    ("my tooth hurts, can i come in tomorrow", "What is it for"),
    ("filling i guess", "At what time"),
    ("ten", r"Filling, tomorrow, Saturday 21 November at 10:00. Shall I book it\?"),
    ("yes", "^10:00 is already taken on that day"),
    ("what's free tomorrow then?", r"3\. 10:30"),
    ("the third one", "at 10:30. Shall I book it"),
    ("yes", "^Booked: filling, .* at 10:30. Your number is D0001"),
    ("what does it cost", "A checkup costs €45"),
    ("i'm with the techniker, do they pay", "Most insurers pay 80 %"),
    ("remind me the day before pls", "D0001 is less than a day away"),
    ("can we make it monday 2pm instead", r"D0001 to Monday 23 November at 14:00. Shall I move it\?"),
    ("yes", "^Appointment D0001 is now on Monday 23 November at 14:00"),
    (
        "remind me the day before pls",
        "^I'll remind you of appointment D0001 the day before, Sunday 22 November",
    ),
    ("when is my appointment again?", "^- D0001: filling, Monday 23 November at 14:00$"),
    ("i cant make it, cancel it", r"\(D0001\). Shall I cancel it\?"),
    ("no, don't", "^OK, I'll leave that"),
    (
        "book a checkup for my daughter too, tuesday at 9",
        r"Checkup, Tuesday 24 November at 09:00. Shall I book it\?",
    ),
    ("yes please", "^Booked: checkup, .* Your number is D0002"),
    ("does it hurt?", "We numb everything that could hurt"),
    ("i waited 40 minutes last time, thats ridiculous", "^I'm sorry that you had to wait"),
    ("are you a real person?", "I'm Mira, a program"),
    ("please cancel appointment D0002", r"Your checkup .* \(D0002\). Shall I cancel it\?"),
    ("yes", "^Appointment D0002 is cancelled"),
    ("can i speak to someone at the desk", "Our desk answers"),
    ("thank you bye", "Nice to hear from you"),
)
RUDE = re.compile(r"didn't (?:quite )?(?:get|understand)|can't help|not sure what you mean|don't know that")


@pytest.fixture
def clinic() -> Clinic:
    return Clinic()


@pytest.fixture
def folder(clinic: Clinic, tmp_path: Path) -> Iterator[Path]:
    """Return the domain with the URL of the local service."""
    folder = tmp_path / "dental"
    shutil.copytree(DENTAL, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with serve(clinic.application()) as url:
        for path in (folder / "tools.yaml", folder / "evaluations" / "reset.py"):
            text = path.read_text(encoding="utf-8")
            assert ADDRESS in text
            path.write_text(text.replace(ADDRESS, url), encoding="utf-8")
        yield folder


@asynccontextmanager
async def open_simulator(folder: Path, *, with_model: bool) -> AsyncIterator[Simulator]:
    """Open the assistant. Its model answers like System 1, in the form of the model protocol."""
    loaded = load_domain(folder)
    system1 = System1.for_domain(loaded.domain)
    author = Author(system1)
    async with scripted(author.script()) as (_, pool):
        if with_model:
            simulator = Simulator.of(loaded, system1=author, models=pool, sections=SYSTEM2)
        else:
            simulator = Simulator.of(loaded, system1=system1)
        try:
            yield simulator
        finally:
            await simulator.close()
        assert bool(author.understood) is with_model


@pytest.mark.parametrize("with_model", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_an_impatient_patient_gets_what_they_want(
    clinic: Clinic, folder: Path, with_model: bool
) -> None:
    """Booked, moved, canceled and with a reminder the day before, with questions in between."""
    clinic.add("D0000", day="2026-11-21", time="10:00", patient="somebody else")
    async with open_simulator(folder, with_model=with_model) as simulator:
        talk = simulator.converse()
        for said, expected in TALK:
            reply = to_plain((await talk.say(said))["reply"])
            assert re.search(expected, reply), f"{said} → {reply}"
            assert not RUDE.search(reply), f"{said} → {reply}"
        early = await talk.wait(2 * DAY_S - 3600)
        reminders = await talk.wait(3 * 3600)

    assert early == []
    assert [turn["reply"] for turn in reminders] == [
        "A reminder: your filling is tomorrow, Monday 23 November at 14:00."
    ]
    kept = {(one["code"], one["day"], one["time"]) for one in clinic.appointments.values()}
    assert kept == {("D0000", "2026-11-21", "10:00"), ("D0001", "2026-11-23", "14:00")}


def test_its_evaluation_begins_anew_for_each_conversation(
    clinic: Clinic, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["domain", "check", str(folder)]) == 0
    assert run(["eval", str(folder), "--data-dir", str(tmp_path), "--fail-under", "1"]) == 0

    told = capsys.readouterr().err
    assert "Conversations call real services: 127.0.0.1" in told
    assert "evaluations/reset.py" not in told
    assert clinic.resets == 3


def test_simulated_patients_reach_their_goals(
    clinic: Clinic, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until the service stores another time than the agreed time."""
    simulating = (
        "eval",
        str(folder),
        "--data-dir",
        str(tmp_path),
        "--simulate",
        "--budget",
        "14",
        "--fail-under",
        "1",
    )
    assert run([*simulating]) == 0
    assert clinic.resets == 14

    clinic.late_by_an_hour = True
    assert run([*simulating]) == 1
    assert "wrong     appointment_book returned {'time': " in capsys.readouterr().err
