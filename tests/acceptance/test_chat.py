"""`parley chat` through a pipe, as a new user runs it (UI-1, UI-2): answers, invalid lines, clean exit."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from parley.stack import TRAINED_FOLDER
from tests.processes.forked import run, user_environment

ROOT = Path(__file__).parents[2]
TURN_KEYS = {
    *("session_id", "turn_id", "seq", "epoch", "status", "text", "reply", "flows", "completed"),
    *("tools", "frame", "actions", "ambiguity", "flags", "duration_ms"),
}


def make_environment(tmp_path: Path, *, trained: bool = True) -> dict[str, str]:
    """Return a user's environment without stores or keys. TMPDIR marks all descendant processes.

    `trained`: True to use models that other tests have trained.
    """
    environment = user_environment(TMPDIR=str(tmp_path))
    if not trained:
        environment.pop(TRAINED_FOLDER, None)
    return environment


def converse(
    tmp_path: Path,
    lines: bytes,
    *options: str,
    command: tuple[str, ...] | None = None,
    trained: bool = True,
) -> subprocess.CompletedProcess[str]:
    environment = make_environment(tmp_path, trained=trained)
    if command is not None:
        return subprocess.run(
            command,
            input=lines.decode(),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
        )
    chat = ("-m", "parley", "chat", "--data-dir", str(tmp_path / "data"), *options)
    return run(chat, given=lines, environment=environment)


def survivors(tmp_path: Path) -> list[str]:
    """List the processes that the run left behind, by environment and output folder."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            printed = str(Path(f"/proc/{process.pid}/fd/1").readlink())
            if process.environ().get("TMPDIR") == str(tmp_path) or printed.startswith(f"{tmp_path}/"):
                found.append(process.name())
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return found


@dataclass(frozen=True)
class Conversation:
    """The result of one run with all these lines: the turns that `--json` prints, and other output."""

    turns: list[dict[str, Any]]
    reports: list[str]
    left: list[str]
    trained: Path


BAD = (b"\xff\xfe", b"a" * 1_000_000, b"")
BOOKING = (
    b"I want to fly to Madrid",
    b"from Oslo",
    b"show me my bookings",
    b"tomorrow",
    b"yes",
    b"show me my bookings",
)


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Conversation:
    place = tmp_path_factory.mktemp("chat")
    lines = (b"Hello", *BAD, *BOOKING, b"/quit", b"Hello")
    done = converse(place, b"\n".join(lines), "--json", trained=False)

    assert done.returncode == 0, done.stderr
    return Conversation(
        [json.loads(line) for line in done.stdout.splitlines()],
        [line for line in done.stderr.splitlines() if line.startswith("parley: line ")],
        survivors(place),
        place / "data" / "trained",
    )


def test_a_piped_line_is_answered_and_nothing_is_left(tmp_path: Path) -> None:
    """Follow README.md, if `make` has built the environment."""
    command = ("make", "-s", "run") if (ROOT / ".venv" / ".installed").exists() else None
    line = b"Book a flight from Oslo to Madrid tomorrow\n"
    done = converse(tmp_path, line, command=command)

    assert done.returncode == 0, done.stderr
    you, parley = done.stdout.splitlines()[:2]
    assert you == "You: Book a flight from Oslo to Madrid tomorrow"
    assert parley.startswith("Parley: ")
    assert "(no answer" not in parley
    assert "OPENAI_API_KEY is not set" in done.stderr
    assert survivors(tmp_path) == []


def test_bad_lines_are_reported_one_by_one_and_the_conversation_goes_on(conversation: Conversation) -> None:
    hello, *bad, following = conversation.turns[:5]
    assert [turn["status"] for turn in bad] == ["rejected"] * 3
    assert [turn["error"]["code"] for turn in bad] == ["invalid_input", "input_too_large", "invalid_input"]
    for turn in (hello, following):
        assert turn["status"] == "done"
        assert set(turn) >= TURN_KEYS
        assert turn["reply"]
    assert [hello["seq"], following["seq"]] == [1, 2]
    assert [report.split(":")[1] for report in conversation.reports] == [" line 2", " line 3", " line 4"]
    assert conversation.left == []


def test_of_the_stack_only_what_was_trained_remains(conversation: Conversation) -> None:
    data = conversation.trained.parent
    assert list(data.iterdir()) == [conversation.trained]
    assert {path.suffix for path in conversation.trained.iterdir()} == {".npz"}


def test_a_booking_with_an_interruption_is_carried_out_and_stored(conversation: Conversation) -> None:
    """UI-1: request, missing slot, another task in between, resumption, confirmation, yes."""
    turns = conversation.turns[4:]
    assert [turn["seq"] for turn in turns] == [2, 3, 4, 5, 6, 7]
    assert {turn["status"] for turn in turns} == {"done"}
    in_between = turns[2]
    assert [flow["dact"] for flow in in_between["flows"]] == ["book_flight"]
    assert turns[3]["ambiguity"] is not None
    assert "book_flight" in turns[4]["completed"]
    assert [(call["tool_id"], call["status"]) for call in turns[4]["tools"]] == [("flight_book", "ok")]
    assert "OSL" in turns[5]["reply"]
    assert "MAD" in turns[5]["reply"]
