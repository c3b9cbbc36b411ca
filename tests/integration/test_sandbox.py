"""PX-10: model-written Python runs in a limited process without network."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.adapters.sandbox import Layer, PythonSandbox
from orchestrator.adapters.sandbox import python_worker as worker
from orchestrator.domain.guarding import HARMLESS_MODULES, Language
from orchestrator.errors import ToolFailure
from orchestrator.ports.sandbox import Returned, SandboxLimits, SandboxResult, StopCategory, Stopped
from orchestrator.tools.guardrails.apply import GuardedPython, apply_guardrails
from orchestrator.tools.guardrails.python_names import SAFE_BUILTINS
from orchestrator.tools.guardrails.verdict import ApprovedCode
from orchestrator.types import JsonObject
from tests.unit.tools.guardrail_samples import ALLOWED_IMPORTS, Sample, in_short, read_benign, read_hostile

HOSTILE = read_hostile("python")
BENIGN = read_benign("python")
ALL_IMPORTS = frozenset(ALLOWED_IMPORTS)
# Endless loops end by a CPU time limit, independent of machine load. Other code has much more CPU time than
# it needs.
ENDLESS = SandboxLimits(wall_s=60, cpu_s=1, memory_bytes=192 * 1024 * 1024)
QUICK = replace(ENDLESS, cpu_s=30)
EVERY = 4
"""The short form runs one in this many benign samples; `test_guardrails.py` checks all."""

REACHES_OUTSIDE = [
    sample
    for sample in HOSTILE
    if sample.name
    in {
        "subclasses",
        "subclasses to open",
        "subclasses to fork",
        "subclasses to kill",
        "another function's builtins",
        "sys through a function",
        "loader",
        "frames of an error",
        "the way out of the worker",
    }
]


async def run(code: str, limits: SandboxLimits = QUICK, **arguments: object) -> SandboxResult:
    return await PythonSandbox().run_python(code, arguments, limits, imports=ALL_IMPORTS)


async def run_guarded(code: str, arguments: JsonObject, allowed: tuple[str, ...]) -> Returned | Stopped:
    approved = apply_guardrails(code, Language.PYTHON, None, allowed_imports=allowed)
    assert isinstance(approved, ApprovedCode), approved
    return await PythonSandbox().run_python(approved.code, arguments, QUICK, imports=approved.imports)


def outcome(result: SandboxResult) -> str:
    return "returned" if isinstance(result, Returned) else result.category.value


@pytest.mark.parametrize("sample", in_short(HOSTILE))
async def test_the_sandbox_stops_hostile_code_without_the_guardrails(sample: Sample) -> None:
    endless = sample.alone == StopCategory.TIMEOUT
    result = await run(sample.code, ENDLESS if endless else QUICK)

    assert outcome(result) == sample.alone, result


def test_at_least_a_hundred_samples_are_tried_and_every_end_is_among_them() -> None:
    assert len(HOSTILE) >= 100
    assert {sample.alone for sample in HOSTILE} == {"returned", *StopCategory} - {"unavailable"}


def test_the_samples_that_reach_outside_are_all_there() -> None:
    assert len(REACHES_OUTSIDE) == 9


@pytest.mark.parametrize("missing", [Layer.EVENTS, Layer.CALLS], ids=str)
@pytest.mark.parametrize("sample", REACHES_OUTSIDE, ids=str)
async def test_each_of_the_two_watchers_stops_alone_what_reaches_outside(
    sample: Sample, missing: Layer
) -> None:
    sandbox = PythonSandbox(without=frozenset({missing}))

    result = await sandbox.run_python(sample.code, {}, QUICK, imports=ALL_IMPORTS)

    assert outcome(result) == "forbidden", result


@pytest.mark.parametrize(
    "sample", [s for s in REACHES_OUTSIDE if s.name in {"subclasses to open", "subclasses to fork"}], ids=str
)
async def test_the_limits_hold_where_both_watchers_are_gone(sample: Sample) -> None:
    sandbox = PythonSandbox(without=frozenset({Layer.EVENTS, Layer.CALLS}))

    result = await sandbox.run_python(sample.code, {}, QUICK, imports=ALL_IMPORTS)

    if outcome(result) != "unavailable":  # without a network namespace, it is not even started
        assert isinstance(result, Stopped)
        assert result.category is StopCategory.ERROR
        assert "Error" in result.message


async def test_nothing_runs_where_the_network_cannot_be_given_up() -> None:
    sandbox = PythonSandbox(without=frozenset({Layer.NETWORK, Layer.CALLS}))

    result = await sandbox.run_python("def f():\n    return 1", {}, QUICK)

    assert outcome(result) == "unavailable"


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=str(sample), marks=[pytest.mark.slow] if place % EVERY else [])
        for place, sample in enumerate(BENIGN)
    ],
)
async def test_benign_code_passes_the_guardrails_and_gives_its_result(sample: Sample) -> None:
    result = await run_guarded(sample.code, sample.arguments, ALLOWED_IMPORTS)

    assert result == Returned(sample.result)


async def test_rejected_code_never_reaches_the_sandbox() -> None:
    sandbox = GuardedPython(PythonSandbox(), ALLOWED_IMPORTS)

    with pytest.raises(ToolFailure, match="forbidden_import"):
        await sandbox.run("import os\ndef f():\n    return os.getpid()", {})


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f():\n    return 1 / 0", "ZeroDivisionError on line 2: division by zero"),
        ("def f():\n    return {1, 2}", "TypeError: Object of type set is not JSON serializable"),
        ("def f():\n    return float('nan')", "ValueError: Out of range float values"),
        ("def f(x):\n    return x", "TypeError: f() missing 1 required positional argument: 'x'"),
        ("def f():\n    return chr(0xD800)", "The result is not valid JSON"),
        ("def f():\n    raise ValueError('no rows')", "ValueError on line 2: no rows"),
    ],
)
async def test_an_error_says_what_to_repair(code: str, said: str) -> None:
    result = await run(code)

    assert isinstance(result, Stopped)
    assert result.category is StopCategory.ERROR
    assert result.message.startswith(said)


async def test_only_the_modules_of_this_run_can_be_imported() -> None:
    code = "import math\ndef f():\n    return math.floor(1.5)"

    allowed = await PythonSandbox().run_python(code, {}, QUICK, imports=frozenset({"math"}))
    refused = await PythonSandbox().run_python(code, {}, QUICK)

    assert allowed == Returned(1)
    assert outcome(refused) == "forbidden"


OF_EACH_MODULE = {
    "base64": "base64.b64encode(b'x').decode()",
    "binascii": "binascii.hexlify(b'x').decode()",
    "bisect": "bisect.bisect([1, 2], 1)",
    "calendar": "calendar.TextCalendar().formatmonth(2024, 1)",
    "cmath": "cmath.sqrt(-1).imag",
    "collections": "collections.deque([1]).pop()",
    "colorsys": "colorsys.rgb_to_hsv(1, 0, 0)",
    "datetime": "datetime.datetime.strptime('2024', '%Y').isoformat()",
    "decimal": "str(decimal.Decimal('1.10').quantize(decimal.Decimal('0.1')))",
    "difflib": "difflib.get_close_matches('a', ['ab'])",
    "fractions": "str(fractions.Fraction(1, 3))",
    "graphlib": "list(graphlib.TopologicalSorter({1: [2]}).static_order())",
    "hashlib": "hashlib.sha256(b'x').hexdigest()",
    "heapq": "heapq.nlargest(1, [1, 2])",
    "html": "html.unescape('&lt;')",
    "itertools": "list(itertools.chain([1]))",
    "json": "json.dumps({'a': 1}, indent=1)",
    "math": "math.pi",
    "numbers": "isinstance(1, numbers.Number)",
    "random": "random.Random(3).gauss(0, 1)",
    "re": "re.sub('a', 'b', 'a')",
    "statistics": "statistics.linear_regression([1, 2], [1, 2]).slope",
    "textwrap": "textwrap.fill('a b c', 3)",
    "time": "time.strptime('2024', '%Y').tm_year",
    "unicodedata": "unicodedata.normalize('NFKC', 'x')",
}


def test_each_module_that_a_domain_may_allow_is_tried() -> None:
    assert HARMLESS_MODULES - set(OF_EACH_MODULE) == {"collections.abc"}


@pytest.mark.parametrize(
    "modules",
    [tuple(OF_EACH_MODULE), *(pytest.param((name,), marks=pytest.mark.slow) for name in OF_EACH_MODULE)],
    ids=lambda modules: modules[0] if len(modules) == 1 else "all",
)
async def test_each_module_that_a_domain_may_allow_computes_without_rights(modules: tuple[str, ...]) -> None:
    """All in one process, and in the long form each in its own."""
    imports = "\n".join(f"import {module}" for module in modules)
    computed = ", ".join(OF_EACH_MODULE[module] for module in modules)
    code = f"{imports}\ndef f():\n    return [{computed}]"

    result = await run_guarded(code, {}, modules)

    assert isinstance(result, Returned), result
    assert len(result.value) == len(modules)
    assert all(result.value)


async def test_the_wall_clock_ends_what_waits_or_computes() -> None:
    result = await run("def f():\n    while True:\n        pass", SandboxLimits(wall_s=0.5, cpu_s=60))

    assert result == Stopped(StopCategory.TIMEOUT, "The code took longer than 0.5 seconds.")


async def test_large_arguments_and_results_within_the_limit_arrive_whole() -> None:
    rows = [{"id": number, "name": "x" * 50} for number in range(10_000)]

    result = await run("def f(rows):\n    return rows[::-1]", rows=rows)

    assert result == Returned(rows[::-1])


async def test_an_endless_answer_is_cut_off_at_the_limit() -> None:
    limits = SandboxLimits(wall_s=20, cpu_s=5, output_bytes=1000)

    result = await run("def f():\n    return 'x' * 1001", limits)

    assert outcome(result) == "output_too_large"


def children() -> set[int]:
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if str(worker.__file__) in command(child)
    }


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def test_a_cancelled_run_leaves_no_process() -> None:
    before = children()
    running = asyncio.create_task(
        run("def f():\n    while True:\n        pass", SandboxLimits(wall_s=60, cpu_s=60))
    )
    while not children() - before:
        await asyncio.sleep(0.01)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert children() == before


async def test_many_runs_at_once_keep_to_their_own() -> None:
    sandbox = PythonSandbox(max_parallel=2)
    code = "def f(x):\n    return x * x"

    results = await asyncio.gather(*(sandbox.run_python(code, {"x": x}, QUICK) for x in range(6)))

    assert results == [Returned(x * x) for x in range(6)]


async def test_a_run_leaves_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert await run("def f():\n    return 1") == Returned(1)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a coroutine


def test_the_guardrails_and_the_sandbox_agree_on_the_built_in_names() -> None:
    assert set(worker.BUILTIN_NAMES.split()) - {"True", "False", "None"} == SAFE_BUILTINS
