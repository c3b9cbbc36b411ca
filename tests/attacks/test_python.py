"""Model-written Python computes and accesses nothing else (PX-10): random code is checked and run."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Self

import pytest
from pydantic_monty import MountDir

from orchestrator.adapters.sandbox import PythonSandbox, monty
from orchestrator.adapters.sandbox.process import SQL_WORKER
from orchestrator.ports.sandbox import Returned, SandboxLimits, StopCategory, Stopped
from orchestrator.tools.guardrails import python_code, python_names
from orchestrator.tools.guardrails.python_code import check_python
from orchestrator.tools.guardrails.verdict import RejectedCode
from tests.cases import parts
from tests.unit.tools.guardrail_samples import ALLOWED_IMPORTS

FUNCTIONS, FUNCTIONS_LONG = 500, 20_000
LIMITS = SandboxLimits(wall_s=20, cpu_s=1, memory_bytes=192 * 1024 * 1024)
# Allowed endings of a run; "forbidden" would mean that only the process stopped the code.
HARMLESS = {
    "returned",
    StopCategory.ERROR,
    StopCategory.TIMEOUT,
    StopCategory.MEMORY,
    StopCategory.OUTPUT_TOO_LARGE,
}

VALUES = parts("""x | 1 | 'a' | [] | {} | () | {1} | 1.5 | None | f | math | re | datetime | json
    | Exception() | '{0.__class__}' | '%s' | b'a' | lambda: x | math.pi | datetime.date | re.compile('a')
    | range(3) | int | str | list | dict | type | object | print | open | eval | getattr | __builtins__
    | globals""")
NAMES = parts("""__class__ | __globals__ | __subclasses__ | __init__ | __dict__ | __mro__ | mro | gi_frame
    | f_globals | tb_frame | format | format_map | append | upper | join | sqrt | today | dumps | sub
    | items | get | func_globals | __code__ | __import__ | __getattribute__ | with_traceback | _sunder
    | os | sys | bit_length""")
SHAPES = parts("""{a}.{n} | {a}.{n}() | {a}.{n}({b}) | {a}({b}) | {a}[{b}] | {a} + {b}
    | [{a} for x in [{b}]] | {a} if {b} else x | (lambda x: {a})({b}) | f'{{{a}!r}}' | f'{{{a}.{n}}}'
    | str({a}) | getattr({a}, '{n}') | {a}.format({b}) | isinstance({a}, {b})
    | sorted([{a}, {b}], key=lambda x: {a}) | {{'{n}': {a}}} | (x := {a}) | next(iter([{a}]))
    | '{{0.{n}}}'.format({a}) | callable({a}) | int({a}) | max({a}, {b}, key={a}) | {a}.{n}.{n}
    | repr({a}.{n})""")
STATEMENTS = [
    "return {e}",
    "x = {e}",
    "import {m}",
    "from {m} import {n}",
    "for x in [{e}]:\n        x = {e}",
    "assert {e}, {e}",
    "try:\n        {e}\n    except Exception as error:\n        x = error.{n}",
    "with {e} as x:\n        pass",
    "global x",
    "match {e}:\n        case {{'{n}': x}}:\n            return x",
    "del x",
    "raise {e}",
    "def g(): return {e}",
    "yield {e}",
    "import os\n    x = os.listdir('/')",
    "x = f.__globals__['__builtins__']['__import__']('os')",
    "class C: {n} = {e}",
    "x.{n} = {e}",
    "x: {e} = 1",
    "lambda *, {n}={e}: x",
    "while {e}:\n        break",
    "return {e}",
]
MODULES = parts("""math | re | json | datetime | os | sys | builtins | math as os | importlib
    | collections | itertools""")


def make_code(random: Random) -> str:
    """Generate a function with a few statements, in which tricks are mixed with harmless parts."""
    body = [_statement(random) for _ in range(random.randint(1, 3))]
    imports = "".join(f"import {module}\n" for module in random.sample(("math", "re", "json", "datetime"), 2))
    argument = random.choice(("", "", f": {_expression(random, 2)}", f"={_expression(random, 2)}"))
    decorator = random.choice(("", "", "", "", f"@{_expression(random, 2)}\n"))
    return f"{imports}{decorator}def f(x{argument}):\n    " + "\n    ".join([*body, "return x"])


def _statement(random: Random) -> str:
    return random.choice(STATEMENTS).format_map(
        {"e": _expression(random, 0), "n": random.choice(NAMES), "m": random.choice(MODULES)}
    )


def _expression(random: Random, depth: int) -> str:
    if depth < 4 and random.random() < 0.6:
        a, b = _expression(random, depth + 1), _expression(random, depth + 1)
        return random.choice(SHAPES).format(a=a, b=b, n=random.choice(NAMES))
    return random.choice(("x", "1", random.choice(VALUES)))


async def fuzz(count: int, seed: int, *, until_forbidden: bool = False) -> Counter[str]:
    """Check random code, run approved code in the sandbox, and count the endings.

    `until_forbidden`: True to stop at the first code that only the sandbox stopped.
    """
    async with contextlib.aclosing(PythonSandbox()) as sandbox:
        return await _fuzz(sandbox, count, seed, until_forbidden=until_forbidden)


async def _fuzz(sandbox: PythonSandbox, count: int, seed: int, *, until_forbidden: bool) -> Counter[str]:
    random, counts = Random(seed), Counter[str]()
    for _ in range(count):
        verdict = check_python(make_code(random), None, ALLOWED_IMPORTS)
        if isinstance(verdict, RejectedCode):
            counts["rejected"] += 1
            continue
        ending = await sandbox.run_python(verdict.code, {"x": [1, 2]}, LIMITS, imports=verdict.imports)
        assert isinstance(ending, Returned | Stopped)
        counts["returned" if isinstance(ending, Returned) else ending.category] += 1
        if until_forbidden and counts[StopCategory.FORBIDDEN]:
            break
    return counts


@pytest.mark.parametrize(
    ("count", "seed"),
    [(FUNCTIONS, 1), pytest.param(FUNCTIONS_LONG, 2, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
async def test_nothing_that_is_approved_reaches_for_the_system(count: int, seed: int) -> None:
    counts = await fuzz(count, seed)
    print(f"\n{count} functions of Python: {dict(counts)}")

    assert set(counts) - {"rejected"} <= HARMLESS, counts
    assert counts["returned"] + counts[StopCategory.ERROR] > 6


class Holed:
    """A planted fault: a pool whose sessions may read this folder. It stands for its pool and for a session."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.worker_pid = getattr(real, "worker_pid", None)

    def checkout(self, **options: Any) -> Holed:
        return Holed(self._real.checkout(**options))

    def __enter__(self) -> Self:
        return type(self)(self._real.__enter__())

    def __exit__(self, *error: object) -> None:
        self._real.__exit__(*error)

    def feed_run(self, code: str, **options: Any) -> Any:
        folder = str(Path(__file__).parent)
        mount = MountDir(host_path=folder, virtual_path="/", mode="read-only")
        return self._real.feed_run(code, mount=mount, **options)


async def test_a_hole_that_was_planted_in_the_interpreter_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples expect the ending `forbidden` for files; with the fault, they return what is in one."""
    code = f"def f():\n    return open('/{Path(__file__).name}').readline()"
    async with contextlib.aclosing(PythonSandbox()) as sandbox:
        refused = await sandbox.run_python(code, {}, LIMITS)
    opened = monty._open_pool
    monkeypatch.setattr(monty, "_open_pool", lambda most: Holed(opened(most)))
    async with contextlib.aclosing(PythonSandbox()) as sandbox:
        read = await sandbox.run_python(code, {}, LIMITS)

    assert isinstance(refused, Stopped)
    assert refused.category is StopCategory.FORBIDDEN
    assert isinstance(read, Returned)
    assert "Model-written Python" in read.value


async def test_the_fuzzer_finds_a_hole_that_was_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rules for names, code accesses the outside, and only the sandbox stops it."""
    monkeypatch.setattr(python_code, "find_name_faults", lambda tree, allowed: iter(()))

    counts = await fuzz(400, seed=1, until_forbidden=True)

    assert counts[StopCategory.FORBIDDEN] > 0, counts


@pytest.mark.parametrize(
    "code", ["def f():\n    return 0x" + "f" * 5_000, "def f():\n    return " + "9" * 5_000]
)
def test_a_number_of_thousands_of_digits_is_rejected(code: str) -> None:
    assert isinstance(check_python(code, None, ALLOWED_IMPORTS), RejectedCode)


async def test_arguments_that_are_no_json_are_refused() -> None:
    result = await PythonSandbox().run_python("def f(x):\n    return x", {"x": "\ud800"}, LIMITS)

    assert isinstance(result, Stopped)
    assert result.category is StopCategory.ERROR


async def test_too_much_output_is_ended_at_once() -> None:
    """The process is ended without waiting for the rest of its output."""
    limits = SandboxLimits(wall_s=60, cpu_s=30, output_bytes=1000)

    result = await PythonSandbox().run_python("def f():\n    return 'x' * 50_000_000", {}, limits)

    assert isinstance(result, Stopped)
    assert result.category is StopCategory.OUTPUT_TOO_LARGE


def test_the_rules_for_names_are_what_the_planted_hole_takes_away() -> None:
    assert python_code.find_name_faults is python_names.find_name_faults


GIVE_UP = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from isolation import isolate
assert isolate({"limits": {"memory_bytes": 512 << 20, "cpu_s": 10}})
if sys.argv[2] == "abort":
    os.abort()
ctypes.CDLL(None).tgkill(int(sys.argv[2]), int(sys.argv[2]), 9)
"""


def give_up(how: str) -> int:
    command = [sys.executable, "-I", "-c", GIVE_UP, str(SQL_WORKER.parent), how]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode


def test_a_query_process_may_end_itself_and_nobody_else() -> None:
    """A process without memory aborts, which is not a forbidden system call."""
    with subprocess.Popen(["sleep", "60"]) as bystander:
        codes = give_up("abort"), give_up(str(bystander.pid))
        is_alive = bystander.poll() is None
        bystander.kill()

    assert codes == (-signal.SIGABRT, -signal.SIGSYS)
    assert is_alive
