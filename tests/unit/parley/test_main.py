"""The command line: errors are one line on standard error and a non-zero exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.main import COMMANDS, complete_wait, load_command, run, take_verbose
from parley.output import Rows, print_result
from tests.cases import for_each


@pytest.fixture(autouse=True)
def no_gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PARLEY_URL", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["sessions"], 1, "No gateway is running in .parley"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["show"], 2, "Missing argument"),
        (["up", "--port", "0"], 2, "--port"),
        (["up", "--host", "0.0.0.0"], 1, "PARLEY_AUTH=required"),
        (["up", "--domain", "nowhere"], 1, "'nowhere': neither built in nor a folder"),
        (["chat", "--domain", "nowhere"], 1, "'nowhere': neither built in nor a folder"),
        (["sessions", "--url", "http://127.0.0.1:9"], 1, "http://127.0.0.1:9"),
        (["sessions", "--url", "not a url"], 1, "not a url"),
    ],
)
def test_an_error_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert run(arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("parley: ")
    assert words in printed.err
    assert printed.err.count("\n") == 1


class WithoutLab:
    def find_spec(self, name: str, *_: object) -> None:
        if name == "lab":
            raise ModuleNotFoundError(name=name)


@pytest.mark.parametrize("command", ["eval", "replay", "soak", "explain"])
def test_the_server_image_says_which_commands_it_lacks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "lab"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [WithoutLab(), *sys.meta_path])

    assert run([command, "anything"]) == 1
    assert f"`parley {command}` is not part of the server image" in capsys.readouterr().err


def test_verbose_shows_the_traceback_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RT-22: the traceback has a URL without its password."""
    monkeypatch.setenv("PARLEY_URL", "http://ann:her-password@127.0.0.1:1")
    for verbose in (False, True):
        assert run(["sessions"], verbose=verbose) == 1
        told = capsys.readouterr().err
        assert "http://ann:[secret]@127.0.0.1:1" in told
        assert "her-password" not in told
        assert ("Traceback" in told) is verbose


def test_verbose_may_stand_anywhere_before_the_double_dash() -> None:
    assert take_verbose(["sessions", "--verbose"]) == (["sessions"], True)
    assert take_verbose(["submit", "s", "--", "--verbose"]) == (["submit", "s", "--", "--verbose"], False)


def test_wait_without_a_number_means_half_a_minute() -> None:
    assert complete_wait(["submit", "s", "Hi", "--wait"]) == ["submit", "s", "Hi", "--wait", "30"]
    assert complete_wait(["submit", "--wait", "--json", "s"]) == ["submit", "--wait", "30", "--json", "s"]
    assert complete_wait(["submit", "--wait", "5", "s"]) == ["submit", "--wait", "5", "s"]
    assert complete_wait(["submit", "s", "--", "--wait"]) == ["submit", "s", "--", "--wait"]


@for_each("name", COMMANDS)
def test_a_summary_in_the_list_is_how_the_commands_own_help_begins(name: str) -> None:
    help_of_its_own = " ".join(load_command(name).help.split())
    assert help_of_its_own.startswith(COMMANDS[name][1])


def test_a_shell_completes_commands_and_options() -> None:
    asked = {"_PARLEY_COMPLETE": "complete_bash", "COMP_WORDS": "parley runs watch --j", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "parley"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--json" in done.stdout.split()


IDENTIFIER = "session_0190f3a2b4c87d9e8f1a2b3c4d5e6f70"


@pytest.mark.parametrize("columns", [80, 60, 200])
def test_identifiers_are_whole_in_a_terminal_of_any_width(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    monkeypatch.setenv("COLUMNS", str(columns))
    row = {"turn_id": IDENTIFIER.replace("session", "turn"), "session_id": IDENTIFIER, "text": "a " * 60}
    print_result(Rows([row], tuple(row)), as_json=False)

    printed = capsys.readouterr().out
    assert IDENTIFIER in printed
    assert row["turn_id"] in printed
    assert "…" not in printed


def test_the_mistakes_of_a_domain_are_told_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "ontology.yaml").write_text("flows: {buy: {}}")
    assert run(["domain", "check", str(tmp_path / "shop"), "--json"]) == 1

    mistakes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert mistakes
    assert all(mistake["place"] and mistake["message"] for mistake in mistakes)


def test_help_imports_no_command() -> None:
    """Help must be fast, so neither commands nor their dependencies are imported."""
    lines = "import sys; from parley.main import run; run(['--help']); print(*sys.modules, sep='\\n')"
    printed = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout
    modules = set(printed.split())
    heavy = {"pydantic", "sqlalchemy", "httpx", "redis", "psycopg", "structlog", "psutil", "celery"}
    assert "parley.main" in modules
    assert {name for name in modules if name.startswith("parley.commands.")} | (modules & heavy) == set()


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    printed = capsys.readouterr().out
    for group in ("Start", "Build", "Sessions", "Operate", "Deploy", "Measure"):
        assert f"\n{group}:\n" in printed
    assert "..." not in printed.partition("Start:")[2]
    for command in (
        "up",
        "chat",
        "submit",
        "sessions",
        "show",
        "history",
        "turns",
        "domain",
        "migrate",
        "doctor",
    ):
        assert f" {command} " in printed


# Commands that run until stopped, write a file, or start another program.
WITHOUT_JSON = {"up", "serve", "redis-acl", "bench"}


def commands_of(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield all subcommands of a command, with their words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, one in inner.items():
        yield from commands_of(f"{name} {word}", one)


@for_each("name", sorted(set(COMMANDS) - WITHOUT_JSON))
def test_every_command_takes_json(name: str) -> None:
    for words, command in commands_of(name, load_command(name)):
        assert any("--json" in option.opts for option in command.params), words


def test_what_was_made_is_told_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["domain", "new", "garden", "--into", str(tmp_path), "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == {"domain": "garden", "folder": str(tmp_path / "garden")}


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"parley \d+\.\d+\.\d+\n", capsys.readouterr().out)
