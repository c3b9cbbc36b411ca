"""`parley chat` in a real terminal: choices by number, commands, tables and the status line (UI-1)."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pexpect
import pyte
import pytest

from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script, ScriptedModel
from tests.acceptance.test_chat import ROOT, make_environment, survivors
from tests.integration.chaos.fleet import wait_until
from tests.integration.modelled import travel_with
from tests.processes.commands import forked_command
from tests.processes.forked import start
from tests.unit.interruptions.setting import write_mailroom

COLUMNS, LINES = 120, 50
PATIENCE_S = 60.0


class Terminal:
    """A terminal with a program. The screen shows the output and answers terminal queries."""

    def __init__(self, child: pexpect.spawn[bytes]) -> None:
        self.child = child
        self.screen = pyte.HistoryScreen(COLUMNS, LINES, history=2000, ratio=1.0)
        self.screen.write_process_input = lambda data: self.child.send(data.encode())
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""

    def wait_for(self, pattern: str, *, below: str = "") -> str:
        """Read until the screen text matches `pattern`, below the last line that contains `below`."""
        while not re.search(pattern, self._below(below)):
            try:
                data = self.child.read_nonblocking(65536, timeout=PATIENCE_S)
            except (pexpect.TIMEOUT, pexpect.EOF) as error:
                raise AssertionError(f"{pattern!r} did not come:\n{self.text}") from error
            self.raw += data
            self._stream.feed(data)
        return self._below(below)

    def type(self, line: str) -> None:
        """Type a line when the prompt appears."""
        self.wait_for(r"You: *(\n|$)")
        self.child.send(line + "\r")

    def say(self, line: str, pattern: str) -> str:
        """Type a line and wait for the expected output."""
        self.type(line)
        return self.wait_for(pattern, below=f"You: {line}")

    @property
    def text(self) -> str:
        above = [
            "".join(row[place].data for place in range(COLUMNS)).rstrip() for row in self.screen.history.top
        ]
        return "\n".join([*above, *(line.rstrip() for line in self.screen.display)]).rstrip()

    def _below(self, mark: str) -> str:
        if not mark:
            return self.text
        _, found, below = self.text.rpartition(mark)
        return below if found else ""


@contextmanager
def terminal(tmp_path: Path, domain: str, *options: str, **environment: str) -> Iterator[Terminal]:
    with forked_command("parley", "parley") as commands:
        child = pexpect.spawn(
            str(commands / "parley"),
            ["chat", "--domain", domain, "--data-dir", str(tmp_path / "data"), *options],
            env={**make_environment(tmp_path), "TERM": "xterm-256color", **environment},
            cwd=str(ROOT),
            dimensions=(LINES, COLUMNS),
        )
        try:
            yield Terminal(child)
        finally:
            if child.isalive():  # `close` waits for a tenth of a second after each signal
                child.kill(signal.SIGHUP)
                with suppress(pexpect.TIMEOUT):
                    child.expect(pexpect.EOF, timeout=PATIENCE_S)
            child.close(force=True)


def test_a_booking_by_numbers_and_commands(tmp_path: Path) -> None:
    """The user's memories are available in the next chat, also without a running `up`."""
    with terminal(tmp_path, "travel", "--user", "anna") as chat:
        chat.wait_for("Session session_")
        chat.wait_for("no open task")
        chat.say("Book a flight from Oslo", "Where would you like to fly to")
        chat.wait_for(r"book_flight \(active\)")
        # Alt-Enter begins a new line and sends nothing.
        chat.child.send("to Madrid\x1b\rtomorrow\r")
        chat.wait_for(r"Shall\s+I\s+book\s+it\?\s+\[1\] Yes +\[2\] No", below="… tomorrow")
        assert "book_flight: Active" in chat.say("/stack", "› book_flight: Active")
        chat.say("2", r"› No\s+Parley: OK, I'll leave that(.|\n)*\[1\] Change the origin")
        chat.say("4", r"› Stop\s+Parley: .*stopped booking a flight")
        chat.wait_for("no open task")
        chat.say("/undo", "Undid the last turn")
        chat.say("/history", "You: Book a flight from Oslo")
        chat.say("/bookings", r"The chat has no command /bookings.*\n(.|\n)*Parley: .*bookings")
        chat.say("exit", r"press Ctrl-D or type /quit.\n(.|\n)*Parley: There's nothing to stop")
        chat.say("/help", "/undo +undo the last turn")
        chat.say("/new", "Session session_")
        chat.say("/plan", "There is no plan")
        chat.say("remember that I prefer aisle seats", "Parley: .*aisle")
        chat.type("/quit")
        chat.child.expect(pexpect.EOF, timeout=PATIENCE_S)
        chat.child.wait()
        assert chat.child.exitstatus == 0
    assert survivors(tmp_path) == []
    ask_and_terminate(tmp_path)
    assert survivors(tmp_path) == []
    assert [*tmp_path.iterdir()] == [tmp_path / "data"]
    assert [*(tmp_path / "data" / "run").iterdir()] == []


def ask_and_terminate(tmp_path: Path) -> None:
    """Start a second chat of the same user through a pipe, and terminate it during a turn."""
    heard = tmp_path / "data" / "heard"
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as given, os.fdopen(writes, "wb", buffering=0) as typed:
        command = ("-m", "parley", "chat", "--user", "anna", "--data-dir", str(tmp_path / "data"))
        with (tmp_path / "data" / "said").open("ab") as errors:
            chat = start(
                command, environment=make_environment(tmp_path), log=heard, errors=errors, given=given
            )
        typed.write(b"what do you know about me?\nHello\n")
        wait_until(lambda: b"You: Hello\n" in heard.read_bytes(), within_s=PATIENCE_S, what="the second line")
        chat.terminate()
        assert chat.wait(PATIENCE_S) != 0
    assert b"I prefer aisle seats (you said so on " in heard.read_bytes()


@pytest.mark.slow
def test_tables_and_charts_in_text(tmp_path: Path) -> None:
    with terminal(tmp_path, "analytics") as chat:
        table = chat.say("describe cars", r"406 rows")
        assert re.search(r"name +mpg +cylinders", table)
        assert re.search(r"chevrolet chevelle malibu +18 +8", table)
        chart = chat.say("draw a bar chart of average horsepower by origin in cars", r"╰──")
        assert re.search(r"USA +█+", chart)
        chat.child.sendeof()
        chat.child.expect(pexpect.EOF, timeout=PATIENCE_S)


@pytest.mark.slow
def test_a_long_answer_is_printed_while_it_is_written(tmp_path: Path) -> None:
    """RS-4, RT-15: the first words are displayed while the model still writes the last words."""
    domain = travel_with(
        tmp_path,
        generation={"naturalize": "auto"},
        thresholds={"stream_threshold_tokens": 1},
        nlu={"mode": "system1"},
    )

    def rewrite(request: Request) -> Reply:
        return Answer(text=f"Wonderful, here it comes! {request.data['draft']}", piece_delay_s=0.05)

    script = Script(rules=(Rule(prompt="res_naturalize", replies=(Computed(rewrite),)),))
    with ScriptedModel(script) as model:
        endpoint = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "PARLEY_MODEL": "scripted"}
        with terminal(tmp_path, str(domain), **endpoint) as chat:
            chat.say("Book a flight from Oslo to Madrid tomorrow", r"Shall\s+I\s+book\s+it\?")
            chat.say("yes", "Parley: Wonderful")
            early = chat.text.rpartition("Parley: Wonderful")[2]
            chat.wait_for(r"Wonderful, here it comes! Booked\.(.|\n)*€158\.", below="You: yes")
            whole = chat.text.rpartition("Parley: Wonderful")[2]

    assert len(early.strip()) < len(whole.strip())
    assert chat.text.count("Wonderful") == 1


WAITING_MAILROOM = '''
"""A mailroom whose letters are counted when the file LET_GO is there; parcels are written down in CALLS."""

import asyncio
from pathlib import Path

from parley import JsonObject, Service


class Mailroom(Service):
    async def count_letters(self) -> JsonObject:
        while not Path("LET_GO").exists():
            await asyncio.sleep(0.05)
        return {"waiting": 2}

    async def print_label(self, *, recipient: str) -> JsonObject:
        return {"label": recipient}

    async def send_parcel(self, *, recipient: str) -> JsonObject:
        with Path("CALLS").open("a") as calls:
            calls.write(f"{recipient}\\n")
        return {"parcel_id": recipient}

    async def send(self, *, recipient: str) -> JsonObject:
        return {"mail_id": recipient}

    async def recall(self, *, mail_id: str) -> JsonObject:
        return {"recalled": bool(mail_id)}

    read_page = list_salaries = count_letters
'''


@pytest.mark.slow
def test_what_is_typed_while_a_turn_runs_is_sent_at_once(tmp_path: Path) -> None:
    """UI-1, RT-5: a correction stops the turn, and /quit waits for the answers."""
    domain, let_go, calls = write_mailroom(tmp_path / "mailroom"), tmp_path / "let_go", tmp_path / "calls"
    service = WAITING_MAILROOM.replace("LET_GO", str(let_go)).replace("CALLS", str(calls))
    (domain / "services.py").write_text(service)
    with terminal(tmp_path, str(domain)) as chat:
        chat.type("send a parcel to Bob")
        chat.say("no, to Ann", "Parley: You said something else, so I stopped here")
        chat.type("thank you")
        chat.type("/quit")
        let_go.touch()
        chat.wait_for("You're welcome", below="You: /quit")
        chat.child.expect(pexpect.EOF, timeout=PATIENCE_S)

    assert calls.read_text() == "ann\n"
    assert re.findall(r"Parley: ([\w']+ \w+)", chat.text) == ["You said", "I've changed", "You're welcome"]
