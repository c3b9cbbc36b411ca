"""`parley chat` through a pipe, as a new user runs it (UI-1, UI-2): answers, bad lines, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
TURN_KEYS = {
    *("session_id", "turn_id", "seq", "epoch", "status", "text", "reply", "flows", "completed"),
    *("tools", "frame", "actions", "ambiguity", "flags", "duration_ms"),
}

pytestmark = pytest.mark.timeout(300)


def make_environment(tmp_path: Path) -> dict[str, str]:
    """A user's environment without stores or key; TMPDIR marks every process that descends from it."""
    hidden = {"DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}


def converse(
    tmp_path: Path, lines: bytes, *options: str, command: tuple[str, ...] | None = None
) -> subprocess.CompletedProcess[bytes]:
    chat = command or (sys.executable, "-m", "parley", "chat", "--data-dir", str(tmp_path / "data"), *options)
    return subprocess.run(
        chat, input=lines, capture_output=True, check=False, cwd=ROOT, env=make_environment(tmp_path)
    )


def survivors(tmp_path: Path) -> list[str]:
    """Processes that the run left behind."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(tmp_path):
                found.append(process.name())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_a_piped_line_is_answered_and_nothing_is_left(tmp_path: Path) -> None:
    done = converse(tmp_path, b"Book a flight from Oslo to Madrid tomorrow\n")

    assert done.returncode == 0, done.stderr.decode()
    you, parley = done.stdout.decode().splitlines()[:2]
    assert you == "You: Book a flight from Oslo to Madrid tomorrow"
    assert parley.startswith("Parley: ")
    assert "(no answer" not in parley
    assert b"No OPENAI_API_KEY" in done.stderr
    assert survivors(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not (ROOT / ".venv" / ".installed").exists(), reason="make has not built .venv here")
def test_make_run_prints_the_conversation_alone(tmp_path: Path) -> None:
    done = converse(tmp_path, b"Book a flight from Oslo to Madrid tomorrow\n", command=("make", "-s", "run"))

    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"You: Book a flight from Oslo to Madrid tomorrow\nParley: ")
    assert survivors(tmp_path) == []


def test_bad_lines_are_reported_one_by_one_and_the_conversation_goes_on(tmp_path: Path) -> None:
    lines = b"\n".join(
        (b"Hello", b"\xff\xfe", b"a" * 1_000_000, b"", b"Book a flight from Oslo to Madrid", b"")
    )
    done = converse(tmp_path, lines, "--json")

    assert done.returncode == 0, done.stderr.decode()
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [turn["status"] for turn in turns] == ["done", "rejected", "rejected", "rejected", "done"]
    assert [turn["error"]["code"] for turn in turns[1:4]] == [
        "invalid_input",
        "input_too_large",
        "invalid_input",
    ]
    for turn in (turns[0], turns[4]):
        assert set(turn) >= TURN_KEYS
        assert turn["reply"]
    assert [turns[0]["seq"], turns[4]["seq"]] == [1, 2]
    reports = [line for line in done.stderr.decode().splitlines() if line.startswith("parley: line ")]
    assert [report.split(":")[1] for report in reports] == [" line 2", " line 3", " line 4"]
    assert survivors(tmp_path) == []


def test_a_terminated_chat_cleans_up(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "parley", "chat", "--data-dir", str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=make_environment(tmp_path),
    ) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(b"Hello\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == b"You: Hello\n"
        chat.send_signal(signal.SIGTERM)
        assert chat.wait() != 0
    assert survivors(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_booking_with_an_interruption_is_carried_out_and_stored(tmp_path: Path) -> None:
    """UI-1: request, missing slot, another task in between, resumption, confirmation, yes."""
    lines = b"\n".join(
        (
            b"I want to fly to Madrid",
            b"from Oslo",
            b"show me my bookings",
            b"tomorrow",
            b"yes",
            b"show me my bookings",
        )
    )
    done = converse(tmp_path, lines, "--json")

    assert done.returncode == 0, done.stderr.decode()
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [turn["seq"] for turn in turns] == [1, 2, 3, 4, 5, 6]
    assert {turn["status"] for turn in turns} == {"done"}
    in_between = turns[2]
    assert [flow["dact"] for flow in in_between["flows"]] == ["book_flight"]
    assert turns[3]["ambiguity"] is not None
    assert "book_flight" in turns[4]["completed"]
    assert [(call["tool_id"], call["status"]) for call in turns[4]["tools"]] == [("flight_book", "ok")]
    assert "OSL" in turns[5]["reply"]
    assert "MAD" in turns[5]["reply"]
