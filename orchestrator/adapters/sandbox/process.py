"""Starts a sandboxed process, waits for it no longer than allowed, and names how it ended."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from orchestrator.domain.services import QueryRows, Table
from orchestrator.ports.sandbox import (
    QueryLimits,
    Returned,
    SandboxLimits,
    SandboxResult,
    StopCategory,
    Stopped,
)
from orchestrator.types import JsonObject

PYTHON_WORKER = Path(__file__).with_name("python_worker.py")
SQL_WORKER = Path(__file__).with_name("sql_worker.py")
# No environment, no user's packages, nothing written, no warnings to a closed stream; -S: no other packages.
INTERPRETER_FLAGS = ("-I", "-B", "-W", "ignore")
ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}  # further arenas would take a share of the address space each
OUT_OF_MEMORY = 3
"""The exit code with which the process says that it has no memory left to say more."""
ANSWER_OVERHEAD_BYTES = 4096
DEFAULT_LIMITS = SandboxLimits()
DEFAULT_QUERY_LIMITS = QueryLimits()

_ENDED_BY: dict[int, Stopped] = {
    signal.SIGXCPU: Stopped(StopCategory.TIMEOUT, "The code used more processor time than it may."),
    signal.SIGSYS: Stopped(StopCategory.FORBIDDEN, "The code tried to reach the system around it."),
    signal.SIGXFSZ: Stopped(StopCategory.FORBIDDEN, "The code tried to write a file."),
    signal.SIGKILL: Stopped(StopCategory.MEMORY, "The system ended the code, most likely for its memory."),
}

_QUERY_ROWS = TypeAdapter(QueryRows)
_CATEGORIES = frozenset(category.value for category in StopCategory)


class Layer(StrEnum):
    """The barriers around the code, besides limits, closed builtins and time."""

    NETWORK = "network"
    """A network namespace without interfaces, where the system lets one be made."""
    CALLS = "calls"
    """A seccomp filter: the kernel ends the process at any call but those of computing."""
    EVENTS = "events"
    """An audit hook: the interpreter ends the process when it reaches outside."""


class PythonSandbox:
    """Implements the port `Sandbox`: one fresh process per call.

    Nothing runs where neither a network namespace nor seccomp is to be had.

    Args:
        max_parallel: how many processes may run at once; more calls wait, which is not counted as
            their time.
        without: layers left out, so that tests can show what the others stop.
    """

    def __init__(
        self,
        *,
        max_parallel: int = 4,
        without: frozenset[Layer] = frozenset(),
    ) -> None:
        self._places = asyncio.Semaphore(max_parallel)
        self._without = sorted(without)

    async def run_python(
        self,
        function_source: str,
        arguments: JsonObject,
        limits: SandboxLimits = DEFAULT_LIMITS,
        *,
        imports: frozenset[str] = frozenset(),
    ) -> SandboxResult:
        """Call the one function of a source; see the port."""
        request: JsonObject = {
            "source": function_source,
            "arguments": arguments,
            "imports": sorted(imports),
            "limits": {
                "memory_bytes": limits.memory_bytes,
                "cpu_s": limits.cpu_s,
                "output_bytes": limits.output_bytes,
            },
            "without": self._without,
        }
        try:
            written = orjson.dumps(request)
        except TypeError as error:
            return Stopped(StopCategory.ERROR, f"The arguments are no JSON: {error}.")
        async with self._places:
            with tempfile.TemporaryDirectory(prefix="parley-") as folder:
                return await _run(("-S", str(PYTHON_WORKER)), written, folder, limits)


class SqlSandbox:
    """Implements the port of the same name: one fresh process per query, over a copy of the tables.

    Args:
        max_parallel: how many queries may run at once; more wait, which is not counted as their time.
    """

    def __init__(self, *, max_parallel: int = 2) -> None:
        self._places = asyncio.Semaphore(max_parallel)

    async def run_sql(
        self, statement: str, tables: Mapping[str, Table], limits: QueryLimits = DEFAULT_QUERY_LIMITS
    ) -> QueryRows | Stopped:
        """Ask one question of copies of the tables; see the port."""
        async with self._places:
            with tempfile.TemporaryDirectory(prefix="parley-") as folder:
                written = await asyncio.to_thread(_write_tables, tables, Path(folder))
                request: JsonObject = {
                    "statement": statement,
                    "tables": written,
                    "limits": {
                        "rows": limits.rows,
                        "memory": f"{limits.process.memory_bytes * 2 // 3}B",
                        "memory_bytes": limits.process.memory_bytes,
                        "cpu_s": limits.process.cpu_s,
                        "output_bytes": limits.process.output_bytes,
                    },
                }
                result = await _run((str(SQL_WORKER),), orjson.dumps(request), folder, limits.process)
        if isinstance(result, Stopped):
            return result
        try:
            return _QUERY_ROWS.validate_python(result.value)
        except ValidationError:
            return Stopped(StopCategory.FORBIDDEN, "The query wrote an answer that is not its own to write.")


def _write_tables(tables: Mapping[str, Table], folder: Path) -> JsonObject:
    """Write each table as a file with one JSON object a row; say where, and which columns it has."""
    written: JsonObject = {}
    for number, (name, table) in enumerate(tables.items()):
        path = folder / f"{number}.json"
        names = [column for column, _ in table.columns]
        with path.open("wb") as file:
            file.writelines(
                orjson.dumps(
                    dict(zip(names, row, strict=True)), default=str, option=orjson.OPT_APPEND_NEWLINE
                )
                for row in table.rows
            )
        written[name] = {"path": str(path), "columns": [list(column) for column in table.columns]}
    return written


async def _run(worker: tuple[str, ...], request: bytes, folder: str, limits: SandboxLimits) -> SandboxResult:
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *INTERPRETER_FLAGS, *worker),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    except OSError as error:
        return Stopped(StopCategory.UNAVAILABLE, f"The process could not be started: {error.strerror}.")
    try:
        async with asyncio.timeout(limits.wall_s):
            return await _converse(process, request, limits)
    except TimeoutError:
        return Stopped(StopCategory.TIMEOUT, f"The code took longer than {limits.wall_s:g} seconds.")
    finally:
        await _end(process)


async def _converse(
    process: asyncio.subprocess.Process, request: bytes, limits: SandboxLimits
) -> SandboxResult:
    assert process.stdin is not None
    assert process.stdout is not None
    sending = asyncio.create_task(_send(process.stdin, request))
    try:
        answer = await _receive(process.stdout, limits.output_bytes + ANSWER_OVERHEAD_BYTES)
    finally:
        sending.cancel()
    if answer is None:
        return Stopped(
            StopCategory.OUTPUT_TOO_LARGE, f"The result has more than {limits.output_bytes} bytes."
        )
    return _read(answer, await process.wait())


async def _send(stream: asyncio.StreamWriter, request: bytes) -> None:
    try:
        stream.write(request)
        await stream.drain()
        stream.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # it ended early; how it ended says why


async def _receive(stream: asyncio.StreamReader, most: int) -> bytes | None:
    """Everything until the end, or None when that is too much."""
    parts = bytearray()
    while chunk := await stream.read(65536):
        parts += chunk
        if len(parts) > most:
            return None
    return bytes(parts)


def _read(answer: bytes, code: int) -> SandboxResult:
    if code < 0:
        crash = Stopped(StopCategory.ERROR, f"The interpreter was ended by signal {-code}.")
        return _ENDED_BY.get(-code, crash)
    try:
        body = orjson.loads(answer)
    except orjson.JSONDecodeError:
        if code == OUT_OF_MEMORY:
            return Stopped(StopCategory.MEMORY, "The code used more memory than it may.")
        if code == 0:
            return Stopped(StopCategory.ERROR, "The result is no text or number that JSON can hold.")
        return Stopped(StopCategory.UNAVAILABLE, f"The process ended with code {code} and without an answer.")
    match body:
        case {"returned": value}:
            return Returned(value)
        case {"stopped": str(category), "message": str(message)} if category in _CATEGORIES:
            return Stopped(StopCategory(category), message)
        case _:
            return Stopped(StopCategory.FORBIDDEN, "The code wrote an answer that is not its own to write.")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End whatever is left of the process, and wait for it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(_wait(process))


async def _wait(process: asyncio.subprocess.Process) -> None:
    # Its end is seen only when its last words were taken; a full buffer would else be waited for without end.
    while process.stdout is not None and await process.stdout.read(65536):
        pass
    await process.wait()
