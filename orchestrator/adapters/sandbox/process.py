"""A sandbox that runs each query in a new process and enforces its time limit."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from orchestrator.adapters.sandbox.isolation import OUT_OF_MEMORY
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

SQL_WORKER = Path(__file__).with_name("sql_worker.py")
# Disable Python's environment variables, user packages, bytecode files and warnings.
INTERPRETER_FLAGS = ("-I", "-B", "-W", "ignore")
ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}  # each additional arena would use up limited address space
ANSWER_OVERHEAD_BYTES = 4096
MAX_PARALLEL = 2
"""Maximum number of query processes per worker."""
DEFAULT_QUERY_LIMITS = QueryLimits()

_ENDED_BY: dict[int, Stopped] = {
    signal.SIGXCPU: Stopped(StopCategory.TIMEOUT, "The query exceeded its CPU time limit."),
    signal.SIGSYS: Stopped(StopCategory.FORBIDDEN, "The query made a forbidden system call."),
    signal.SIGXFSZ: Stopped(StopCategory.FORBIDDEN, "The query tried to write a file."),
    signal.SIGKILL: Stopped(
        StopCategory.MEMORY, "The system killed the process, probably because it used too much memory."
    ),
}

_QUERY_ROWS = TypeAdapter(QueryRows)
_CATEGORIES = frozenset(category.value for category in StopCategory)


class SqlSandbox:
    """A `ports.sandbox.SqlSandbox` that runs each query in a new process, on a copy of the tables.

    Waiting for one of the `MAX_PARALLEL` places doesn't count as run time.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_PARALLEL)

    async def run_sql(
        self, statement: str, tables: Mapping[str, Table], limits: QueryLimits = DEFAULT_QUERY_LIMITS
    ) -> QueryRows | Stopped:
        async with self._places:
            with tempfile.TemporaryDirectory(prefix="parley-") as folder:
                written = await asyncio.to_thread(_write_tables, tables, Path(folder))
                request: JsonObject = {
                    "statement": statement,
                    "tables": written,
                    "limits": {
                        **asdict(limits.process),
                        "rows": limits.rows,
                        "memory": f"{limits.process.memory_bytes * 2 // 3}B",
                    },
                }
                result = await _run(orjson.dumps(request), folder, limits.process)
        if isinstance(result, Stopped):
            return result
        try:
            return _QUERY_ROWS.validate_python(result.value)
        except ValidationError:
            return Stopped(StopCategory.FORBIDDEN, "The query produced an invalid result.")


def _write_tables(tables: Mapping[str, Table], folder: Path) -> JsonObject:
    """Write each table to a JSON Lines file. Return each table's path and columns."""
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


async def _run(request: bytes, folder: str, limits: SandboxLimits) -> SandboxResult:
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *INTERPRETER_FLAGS, str(SQL_WORKER)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    except OSError as error:
        return Stopped(StopCategory.UNAVAILABLE, f"Could not start the process: {error.strerror}.")
    try:
        async with asyncio.timeout(limits.wall_s):
            return await _converse(process, request, limits)
    except TimeoutError:
        return Stopped(StopCategory.TIMEOUT, f"The query took longer than {limits.wall_s:g} seconds.")
    finally:
        await _end(process)


async def _converse(
    process: asyncio.subprocess.Process, request: bytes, limits: SandboxLimits
) -> SandboxResult:
    assert process.stdin is not None
    assert process.stdout is not None
    most = limits.output_bytes + ANSWER_OVERHEAD_BYTES
    sending = asyncio.create_task(_send(process.stdin, request))
    try:
        answer = await _receive(process.stdout, most)
    finally:
        sending.cancel()
    if answer is None:
        return Stopped(StopCategory.OUTPUT_TOO_LARGE, f"The output has more than {most} bytes; return less.")
    return _read(answer, await process.wait())


async def _send(stream: asyncio.StreamWriter, request: bytes) -> None:
    try:
        stream.write(request)
        await stream.drain()
        stream.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # the process exited early; its exit code indicates the reason


async def _receive(stream: asyncio.StreamReader, most: int) -> bytes | None:
    parts = bytearray()
    while chunk := await stream.read(65536):
        parts += chunk
        if len(parts) > most:
            return None
    return bytes(parts)


def _read(answer: bytes, code: int) -> SandboxResult:
    if code < 0:
        crash = Stopped(StopCategory.ERROR, f"The interpreter was killed by signal {-code}.")
        return _ENDED_BY.get(-code, crash)
    try:
        body = orjson.loads(answer)
    except orjson.JSONDecodeError:
        if code == OUT_OF_MEMORY:
            return Stopped(StopCategory.MEMORY, "The query exceeded its memory limit.")
        if code == 0:
            return Stopped(StopCategory.ERROR, "The result is not valid JSON.")
        return Stopped(StopCategory.UNAVAILABLE, f"The process exited with code {code} without a result.")
    match body:
        case {"returned": value}:
            return Returned(value)
        case {"stopped": str(category), "message": str(message)} if category in _CATEGORIES:
            return Stopped(StopCategory(category), message)
        case _:
            return Stopped(StopCategory.FORBIDDEN, "The query produced an invalid result.")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # the process has just exited
            os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(_wait(process))


async def _wait(process: asyncio.subprocess.Process) -> None:
    # Drain the output first, because `wait` never returns while the buffer is full.
    while process.stdout is not None and await process.stdout.read(65536):
        pass
    await process.wait()
