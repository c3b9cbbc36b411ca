"""A process's log: facts and error types, never secrets or contents (RT-22).

Each case runs in a separate process, because logging is global.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

SECRET = "the-db-password"
CONTENT = "xylophone"

PRELUDE = f"""
import asyncio, logging, threading, traceback, warnings
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.logs import set_up_logging
set_up_logging("DEBUG", frozenset({{{SECRET!r}}}))
log = get_logger("orchestrator.x")
foreign = logging.getLogger("celery.app.trace")
said = {CONTENT!r}
address = "postgresql://u:{SECRET}@h/d"
def fail():
    said_here = said
    try:
        raise ConnectionError(f"cannot connect to {{address}}")
    except ConnectionError as error:
        raise ValueError(f"no such city: {{said_here}}") from error
"""


UNTIL_SET_UP = PRELUDE.replace("set_up_logging(", "(lambda *_: None)(")


FORKING = """
import asyncio, json, logging, os, sys, threading, traceback, warnings
import orchestrator.telemetry.logs
for line in sys.stdin:
    code, *written = json.loads(line)
    if os.fork() == 0:
        for stream, path in enumerate(written, start=1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        break
    os.wait()
    print("ended", flush=True)
else:
    sys.exit()
exec(compile(code, "<string>", "exec"))
"""
"""A program that runs each program it reads in a fork in which only the imports have happened."""

Run = Callable[[str], tuple[list[dict[str, Any]], str]]


@pytest.fixture(scope="module")
def run_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[str, str]]]:
    """Run a program to its end and return its output."""
    paths = [tmp_path_factory.mktemp("logs") / name for name in ("output", "errors")]
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as forking:
        orders, answers = forking.stdin, forking.stdout
        assert orders is not None
        assert answers is not None

        def run_it(code: str) -> tuple[str, str]:
            orders.write(json.dumps([code, *map(str, paths)]) + "\n")
            orders.flush()
            assert answers.readline() == "ended\n"
            output, errors = (path.read_text(encoding="utf-8") for path in paths)
            return output, errors

        yield run_it


@pytest.fixture
def run(run_alone: Callable[[str], tuple[str, str]]) -> Run:
    """Run a program after the prelude. Return its log lines and its whole output."""

    def run_it(code: str) -> tuple[list[dict[str, Any]], str]:
        output, errors = run_alone(PRELUDE + code)
        assert output == ""
        return [json.loads(line) for line in errors.splitlines()], errors

    return run_it


CAUGHT = """
try:
    fail()
except ValueError as error:
    caught = error
"""

CASES = {
    "a traceback of ours": CAUGHT + "log.error('A tool failed unexpectedly.', exc_info=caught)",
    "an error as a field": CAUGHT + "log.warning('A tool failed unexpectedly.', error=caught)",
    "log.exception": "try:\n    fail()\nexcept ValueError:\n    log.exception('It broke.')",
    "a library's traceback": CAUGHT + "foreign.error('It broke.', exc_info=caught)",
    "a library that repeats the error": CAUGHT
    + "foreign.error('raised unexpected: %r', caught, exc_info=caught)",
    "a library that repeats the text": CAUGHT + "foreign.error('raised: %s', caught, exc_info=caught)",
    "an unexpected end": "fail()",
    "the end of a thread": "thread = threading.Thread(target=fail)\nthread.start()\nthread.join()",
    "a task that nobody waits for": """
async def main():
    task = asyncio.create_task(asyncio.to_thread(fail))
    await asyncio.wait([task])
asyncio.run(main())
import gc
gc.collect()
""",
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_are_told_without_their_words_and_without_local_variables(case: str, run: Run) -> None:
    lines, written = run(CASES[case])
    assert any("ValueError" in json.dumps(line) for line in lines), written
    assert SECRET not in written
    assert CONTENT not in written


def test_a_program_that_only_imports_us_reads_no_local_variables_either(
    run_alone: Callable[[str], tuple[str, str]],
) -> None:
    """For example, a failing tool in a domain's test or in a notebook, without a logging setup."""
    code = UNTIL_SET_UP + CAUGHT + "log.error('A tool failed unexpectedly.', exc_info=caught)"
    output, errors = run_alone(code)

    assert "A tool failed unexpectedly." in errors
    assert "builtins.ValueError" in errors
    assert SECRET not in errors + output
    assert CONTENT not in errors + output


def test_our_own_errors_are_told_whole_but_for_secrets(run: Run) -> None:
    (line,), _ = run("log.warning('It is away.', error=Unavailable(f'{address} does not answer.'))")
    assert line["error"] == "postgresql://u:[secret]@h/d does not answer."


def test_errors_of_the_system_say_which(run: Run) -> None:
    (line,), written = run(
        "try:\n    open('/nowhere/' + said)\nexcept OSError as error:\n    log.warning('No.', error=error)"
    )
    assert line["error"] == "FileNotFoundError: No such file or directory"
    assert CONTENT not in written


def test_warnings_say_where_and_of_what_kind(run: Run) -> None:
    (line,), written = run("warnings.warn(f'Exception raised outside body: {said}', RuntimeWarning)")
    assert line["event"].endswith("RuntimeWarning")
    assert CONTENT not in written


def test_libraries_are_not_debugged_and_carriers_not_heard(run: Run) -> None:
    """At DEBUG, libraries quote the data that they transport, and some do so at other levels."""
    code = """
for name in ("openai._base_client", "httpx", "httpx2", "httpcore.http11", "mcp.client", "celery.pool", "kombu"):
    logging.getLogger(name).debug("Request options: %s", said)
for name in ("openai", "httpx", "httpx2._client", "mcp.shared.session"):
    logging.getLogger(name).warning("Failed to validate %s", said)
foreign.info("Task x succeeded")
log.debug("We may debug ourselves.", bytes=3)
"""
    lines, written = run(code)
    assert [line["event"] for line in lines] == ["Task x succeeded", "We may debug ourselves."], written


@pytest.mark.parametrize(
    "code",
    [
        "log.info('Connected.', url=address)",
        "foreign.info('Connected to %s', address)",
        "foreign.info('Connected to ' + address)",
        "log.info('Sent.', headers={'Authorization': 'Bearer abc-0123456789'}, nested=[{'password': said}])",
    ],
)
def test_no_line_holds_a_secret(code: str, run: Run) -> None:
    (line,), written = run(code)
    assert "[secret]" in written
    assert SECRET not in written
    assert "abc-0123456789" not in written
    assert line["event"].startswith(("Connected", "Sent"))
