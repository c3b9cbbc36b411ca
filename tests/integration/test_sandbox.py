"""PX-10: model-written Python runs in a limited process without network."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import psutil
import pytest

from orchestrator.adapters.sandbox import PythonSandbox
from orchestrator.adapters.sandbox.monty import INTERPRETER_BYTES, KEPT_BYTES, NOTHING_NEW
from orchestrator.domain.guarding import HARMLESS_MODULES, Language
from orchestrator.errors import ToolFailure
from orchestrator.extras import needs_extra
from orchestrator.ports.sandbox import Returned, SandboxLimits, SandboxResult, StopCategory, Stopped
from orchestrator.tools.guardrails.apply import GuardedPython, apply_guardrails
from orchestrator.tools.guardrails.verdict import ApprovedCode
from orchestrator.types import JsonObject
from tests.shape.sources import REPOSITORY
from tests.unit.tools.guardrail_samples import ALLOWED_IMPORTS, Sample, in_short, read_benign, read_hostile

HOSTILE = read_hostile("python")
BENIGN = read_benign("python")
ALL_IMPORTS = frozenset(ALLOWED_IMPORTS)
# Endless loops end by a CPU time limit, independent of machine load. Other code has much more CPU time than
# it needs.
ENDLESS = SandboxLimits(wall_s=60, cpu_s=1, memory_bytes=192 * 1024 * 1024)
QUICK = replace(ENDLESS, cpu_s=30)


@pytest.fixture
async def sandbox() -> AsyncIterator[PythonSandbox]:
    async with contextlib.aclosing(PythonSandbox()) as sandbox:
        yield sandbox


async def run(
    sandbox: PythonSandbox, code: str, limits: SandboxLimits = QUICK, **arguments: object
) -> SandboxResult:
    return await sandbox.run_python(code, arguments, limits, imports=ALL_IMPORTS)


async def run_guarded(
    sandbox: PythonSandbox, code: str, arguments: JsonObject, allowed: tuple[str, ...]
) -> Returned | Stopped:
    approved = apply_guardrails(code, Language.PYTHON, None, allowed_imports=allowed)
    assert isinstance(approved, ApprovedCode), approved
    return await sandbox.run_python(approved.code, arguments, QUICK, imports=approved.imports)


def outcome(result: SandboxResult) -> str:
    return "returned" if isinstance(result, Returned) else result.category.value


@pytest.mark.parametrize("sample", in_short(HOSTILE))
async def test_the_sandbox_stops_hostile_code_without_the_guardrails(
    sample: Sample, sandbox: PythonSandbox
) -> None:
    endless = sample.alone == StopCategory.TIMEOUT
    result = await run(sandbox, sample.code, ENDLESS if endless else QUICK)

    assert outcome(result) == sample.alone, result


def test_at_least_a_hundred_samples_are_tried_and_every_end_is_among_them() -> None:
    assert len(HOSTILE) >= 100
    assert {sample.alone for sample in HOSTILE} == {"returned", *StopCategory} - {"unavailable"}


@pytest.mark.parametrize("sample", BENIGN, ids=str)
async def test_benign_code_passes_the_guardrails_and_gives_its_result(
    sample: Sample, sandbox: PythonSandbox
) -> None:
    result = await run_guarded(sandbox, sample.code, sample.arguments, ALLOWED_IMPORTS)

    assert result == Returned(sample.result)


async def test_rejected_code_never_reaches_the_sandbox() -> None:
    python = GuardedPython(PythonSandbox(), ALLOWED_IMPORTS)

    with pytest.raises(ToolFailure, match="forbidden_import"):
        await python.run("import os\ndef f():\n    return os.getpid()", {})


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f():\n    return 1 / 0", "ZeroDivisionError on line 2: division by zero"),
        ("def f():\n    return {1, 2}", "TypeError: Object of type set is not JSON serializable"),
        ("def f():\n    return float('nan')", "ValueError: Out of range float values"),
        ("def f(x):\n    return x", "TypeError: f() missing 1 required positional argument: 'x'"),
        ("def f():\n    return chr(0xD800)", "ValueError on line 2: chr() arg not in range"),
        ("def f():\n    return g()", "NameError on line 2: name 'g' is not defined"),
        (
            "import math\n\ndef f():\n    return math.sqroot(4)",
            "AttributeError on line 4: module 'math' has no",
        ),
        (
            "from datetime import datetime\n\ndef f():\n    return datetime.strptime('2024', '%Y').year",
            "ValueError on line 4: time data '2024' does not match format '%Y'. A format needs a year, a month",
        ),
        ("def f():\n    raise ValueError('no rows')", "ValueError on line 2: no rows"),
    ],
)
async def test_an_error_says_what_to_repair(code: str, said: str, sandbox: PythonSandbox) -> None:
    result = await run(sandbox, code)

    assert isinstance(result, Stopped)
    assert result.category is StopCategory.ERROR
    assert result.message.startswith(said)


async def test_only_the_modules_of_this_run_can_be_imported(sandbox: PythonSandbox) -> None:
    code = "import math\ndef f():\n    return math.floor(1.5)"

    allowed = await sandbox.run_python(code, {}, QUICK, imports=frozenset({"math"}))
    refused = await sandbox.run_python(code, {}, QUICK)

    assert allowed == Returned(1)
    assert outcome(refused) == "forbidden"


OF_EACH_MODULE = {
    "base64": "base64.b64encode(b'x').decode()",
    "binascii": "binascii.hexlify(b'x').decode()",
    "bisect": "bisect.bisect([1, 2], 1)",
    "collections": "collections.deque([1]).pop()",
    "datetime": "datetime.datetime.strptime('2024-01-02', '%Y-%m-%d').isoformat()",
    "decimal": "str(decimal.Decimal('1.10').quantize(decimal.Decimal('0.1')))",
    "hashlib": "hashlib.sha256(b'x').hexdigest()",
    "itertools": "list(itertools.chain([1]))",
    "json": "json.dumps({'a': 1}, indent=1)",
    "math": "math.pi",
    "random": "random.Random(3).gauss(0, 1)",
    "re": "re.sub('a', 'b', 'a')",
    "statistics": "statistics.linear_regression([1, 2], [1, 2]).slope",
    "time": "time.strptime('2024-01-02', '%Y-%m-%d').tm_year",
    "unicodedata": "unicodedata.normalize('NFKC', 'x')",
}


def test_each_module_that_a_domain_may_allow_is_tried() -> None:
    assert set(OF_EACH_MODULE) == HARMLESS_MODULES


async def test_each_module_that_a_domain_may_allow_computes(sandbox: PythonSandbox) -> None:
    imports = "\n".join(f"import {module}" for module in OF_EACH_MODULE)
    code = f"{imports}\ndef f():\n    return [{', '.join(OF_EACH_MODULE.values())}]"

    result = await run_guarded(sandbox, code, {}, tuple(OF_EACH_MODULE))

    assert isinstance(result, Returned), result
    assert len(result.value) == len(OF_EACH_MODULE)
    assert all(result.value)


async def test_the_wall_clock_ends_what_waits_or_computes(sandbox: PythonSandbox) -> None:
    result = await run(sandbox, LOOP, SandboxLimits(wall_s=0.5, cpu_s=60))

    assert result == Stopped(StopCategory.TIMEOUT, "The code took longer than 0.5 seconds.")
    assert workers() == set()


async def test_large_arguments_and_results_within_the_limit_arrive_whole(sandbox: PythonSandbox) -> None:
    rows = [{"id": number, "name": "x" * 50} for number in range(10_000)]

    result = await run(sandbox, "def f(rows):\n    return rows[::-1]", rows=rows)

    assert result == Returned(rows[::-1])


async def test_an_endless_answer_is_cut_off_at_the_limit(sandbox: PythonSandbox) -> None:
    limits = SandboxLimits(wall_s=20, cpu_s=5, output_bytes=1000)

    result = await run(sandbox, "def f():\n    return 'x' * 1001", limits)

    assert outcome(result) == "output_too_large"


async def test_what_the_code_prints_goes_nowhere(
    sandbox: PythonSandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await run(sandbox, "def f():\n    print('secret')\n    return 1") == Returned(1)
    assert "secret" not in "".join(capfd.readouterr())


LOOP = "def f():\n    while True:\n        pass"


def workers(of: int | None = None) -> set[int]:
    return {child.pid for child in psutil.Process(of).children(recursive=True) if child.name() == "monty"}


async def until_busy() -> int:
    """Return the only worker as soon as it computes."""
    while not (found := [pid for pid in workers() if psutil.Process(pid).cpu_times().user > 0.05]):
        await asyncio.sleep(0.01)
    return found[0]


async def test_a_cancelled_run_leaves_no_process(sandbox: PythonSandbox) -> None:
    running = asyncio.create_task(run(sandbox, LOOP, SandboxLimits(wall_s=60, cpu_s=60)))
    await until_busy()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert workers() == set()
    assert await run(sandbox, "def f():\n    return 1") == Returned(1)


async def test_a_worker_that_dies_fails_one_call_only(sandbox: PythonSandbox) -> None:
    running = asyncio.create_task(run(sandbox, LOOP, SandboxLimits(wall_s=60, cpu_s=60)))
    dying = await until_busy()
    beside = asyncio.create_task(run(sandbox, "def f():\n    return sum(range(1000000))"))
    os.kill(dying, signal.SIGKILL)

    assert outcome(await running) == "memory"
    assert await beside == Returned(499_999_500_000)
    assert await run(sandbox, "def f():\n    return 1") == Returned(1)


async def test_many_runs_at_once_keep_to_their_own() -> None:
    code = "def f(x):\n    return x * x"
    async with contextlib.aclosing(PythonSandbox(max_parallel=2)) as sandbox:
        results = await asyncio.gather(*(sandbox.run_python(code, {"x": x}, QUICK) for x in range(6)))

        assert results == [Returned(x * x) for x in range(6)]
        assert len(workers()) <= 2


async def test_nothing_of_a_call_is_left_for_the_next_one() -> None:
    leaves = "import random\ndef f():\n    global left\n    left = random.seed(1)\n    return random.random()"
    looks = "import random\ndef f():\n    try:\n        return left\n    except NameError:\n        pass"
    looks += "\n    return random.random()"
    async with contextlib.aclosing(PythonSandbox(max_parallel=1)) as sandbox:
        first, second, third = [
            await sandbox.run_python(code, {}, QUICK, imports=frozenset({"random"}))
            for code in (leaves, looks, looks)
        ]

        assert len(workers()) == 1
    assert isinstance(first, Returned)
    assert isinstance(second, Returned)
    assert isinstance(second.value, float)
    assert len({str(first), str(second), str(third)}) == 3


async def test_the_kernel_limits_a_worker_before_it_reads_code(sandbox: PythonSandbox) -> None:
    """Without new file descriptors, even a fault in the interpreter leads to no file and no connection."""
    assert await run(sandbox, "def f():\n    return 1") == Returned(1)

    (worker,) = workers()
    assert environment(worker) == {}
    for kind in NOTHING_NEW:
        assert resource.prlimit(worker, kind) == (0, 0)
    assert resource.prlimit(worker, resource.RLIMIT_AS)[0] == 2 * QUICK.memory_bytes + INTERPRETER_BYTES


def environment(process: int) -> dict[str, str]:
    return psutil.Process(process).environ()


@pytest.mark.parametrize("code", ["return len([0] * 5_000_000)", "return [0] * 10**9"])
async def test_an_idle_worker_keeps_no_large_memory(code: str, sandbox: PythonSandbox) -> None:
    await run(sandbox, f"def f():\n    {code}")

    assert all(psutil.Process(worker).memory_info().rss <= KEPT_BYTES for worker in workers())
    assert await run(sandbox, "def f():\n    return 1") == Returned(1)


USED = """
import asyncio, sys
from orchestrator import bootstrap
from orchestrator.adapters.sandbox import PythonSandbox
from orchestrator.adapters.sandbox.monty import INTERPRETER_BYTES, KEPT_BYTES, NOTHING_NEW
from orchestrator.ports.sandbox import SandboxLimits
sandbox = PythonSandbox()
assert "pydantic_monty" not in sys.modules
limits = SandboxLimits(wall_s=60, cpu_s=2)
asyncio.run(sandbox.run_python(sys.argv[1], {}, limits))
"""


def use(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", USED, code], cwd=REPOSITORY)


def test_a_process_that_never_runs_python_has_no_worker_and_ends_well() -> None:
    """The assertion in the process: importing everything doesn't import the interpreter."""
    with use("def f():\n    return 1") as process:
        assert process.wait() == 0


def test_workers_end_soon_after_their_process_was_killed() -> None:
    with use(LOOP) as process:
        while not (left := workers(process.pid)):
            time.sleep(0.01)
        process.kill()

    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in left if psutil.pid_exists(pid)], timeout=20)
    assert [worker for worker in alive if worker.status() != psutil.STATUS_ZOMBIE] == []


async def test_a_server_without_the_interpreter_says_what_to_install(
    sandbox: PythonSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)

    result = await run(sandbox, "def f():\n    return 1")

    assert result == Stopped(StopCategory.UNAVAILABLE, needs_extra("sandbox"))
