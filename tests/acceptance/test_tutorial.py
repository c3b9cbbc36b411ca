"""The tutorial, followed block by block: files are written, commands run, and output is compared.

The permanent process `up` is the installed `parley`. Short commands are forked, because imports would take
most of the time.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parley.embedded.ports import free_port
from tests.processes.commands import forked_command
from tests.processes.forked import user_environment

ROOT: Final = Path(__file__).parents[2]
INSTALLED: Final = Path(sys.executable).parent
PARTS: Final = tuple(
    ROOT / "docs" / name for name in ("tutorial.md", "tutorial-plans.md", "tutorial-backend.md")
)
_BLOCK: Final = re.compile(
    r"^```(?P<language>\w+)(?: (?P<title>[^\n]+))?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
_ENDED: Final = "-- ended with "


@dataclass(frozen=True)
class Command:
    line: str
    expected: list[str] = field(default_factory=list[str])


def commands(body: str) -> list[Command]:
    found: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ ")))
        else:
            found[-1].expected.append(line)
    return found


def write(folder: Path, title: str, body: str) -> None:
    """Write a file, or append to it if the title ends with a plus."""
    path = folder / title.removesuffix(" +")
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") + "\n" if title.endswith(" +") else ""
    path.write_text(before + body, encoding="utf-8")


class Shell:
    """One shell for all commands, like a reader's, with `up` on a free port and its output in a file."""

    def __init__(self, folder: Path, commands: Path) -> None:
        path = f"{commands}:{INSTALLED}:{os.environ['PATH']}"
        environment = user_environment(PATH=path, COLUMNS="120")
        del environment["PYTHONPATH"]  # the reader has installed Parley
        self._port = free_port()
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    def run(self, command: Command) -> tuple[str, int]:
        """Return the output and the exit code of a command."""
        line = command.line
        if line.endswith("&") and not line.startswith("parley"):
            written = line.removesuffix("&").split(">")[-1].strip()
            line += f"\nwhile kill -0 $! && ! test -s {written}; do sleep 0.1; done"
        elif line.endswith("&"):
            ready = command.expected[0]
            line = f"{INSTALLED}/{line.removesuffix('&')} --port {self._port} > up.log 2>&1 &\n"
            line += f"while kill -0 $! && ! grep --quiet '{ready}' up.log; do sleep 0.1; done; cat up.log\n"
            line += f"export PARLEY_URL=http://127.0.0.1:{self._port}"
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{line}\ncode=$?; echo; echo '{_ENDED}'$code\n")
        self._bash.stdin.flush()
        printed: list[str] = []
        for heard in self._bash.stdout:
            if heard.startswith(_ENDED):
                return "".join(printed), int(heard.removeprefix(_ENDED))
            printed.append(heard)
        raise AssertionError("".join(printed))

    def close(self) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.write("kill $(jobs -p); wait; exit\n")
        self._bash.stdin.close()
        try:
            self._bash.wait(60)
        finally:
            assert self._bash.stdout is not None
            self._bash.stdout.close()
            if self._bash.poll() is None:
                os.killpg(self._bash.pid, signal.SIGKILL)


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    with forked_command("parley", "parley") as commands:
        opened = Shell(folder, commands)
        try:
            yield opened
        finally:
            opened.close()


def assert_printed(printed: str, command: Command) -> None:
    """Compare each expected line with the output, in order; “…” matches anything."""
    at = 0
    for line in command.expected:
        parts = [re.escape(part.strip()) for part in line.split("…") if part.strip()]
        match = re.compile("[^\n]*".join(parts)).search(printed, at)
        assert match is not None, f"$ {command.line}\nwas to print {line!r}, and printed\n{printed}"
        at = match.end()


def test_it_can_be_followed() -> None:
    blocks = [block for part in PARTS for block in _BLOCK.finditer(part.read_text(encoding="utf-8"))]
    assert len(blocks) > 20
    # Not below pytest's own folder: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="tutorial-") as name, shell(Path(name)) as opened:
        for block in blocks:
            if block["language"] != "console":
                write(Path(name), block["title"], block["body"])
                continue
            for command in commands(block["body"]):
                printed, code = opened.run(command)
                assert code == 0, f"$ {command.line}\nended with {code}:\n{printed}"
                assert_printed(printed, command)
