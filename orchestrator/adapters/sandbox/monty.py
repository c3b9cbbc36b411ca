"""A sandbox that runs model-written Python in Monty, an interpreter without files, network or processes.

Monty runs in worker processes. This process only exchanges JSON texts with them, and offers no functions to the code.
"""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from orchestrator.adapters.sandbox.monty_source import Forbidden, Prepared, prepare
from orchestrator.extras import explain_missing
from orchestrator.ports.sandbox import Returned, SandboxLimits, SandboxResult, StopCategory, Stopped
from orchestrator.types import JsonObject

if TYPE_CHECKING:  # imported on the first call, because few processes run Python
    from pydantic_monty import Monty, MontyRuntimeError, MontySession, ResourceLimits

DEFAULT_LIMITS = SandboxLimits()
INTERPRETER_BYTES = 384 * 1024 * 1024
"""Address space of a worker in addition to twice the code's memory."""

KEPT_BYTES = 48 * 1024 * 1024
"""Memory above which a worker ends with its call, because it would keep the memory until its next call."""

# Without new file descriptors, a worker cannot open a file or a connection, even through a fault in the interpreter.
NOTHING_NEW = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)

_STOPPED_BY = {
    "MemoryError": Stopped(StopCategory.MEMORY, "The code exceeded its memory limit."),
    "TimeoutError": Stopped(StopCategory.TIMEOUT, "The code exceeded its CPU time limit."),
}
_HINTS = {
    "does not match format": "A format needs a year, a month and a day.",
    "no attribute 'isocalendar'": "Use strftime('%G-W%V').",
    "callable replacement": "Use a text, or re.finditer().",
}
"""Alternatives to features that Monty lacks, by a part of its message."""


class PythonSandbox:
    """A `Sandbox` that runs each call in a new Monty session. The first call starts the first worker.

    A worker that crashes, or whose call is canceled or takes too long, is killed and replaced. Don't fork the process
    after a call: Monty's threads are missing in the fork, so that its calls hang.

    Args:
        max_parallel: maximum number of workers. Waiting for a free worker doesn't count as run time.
    """

    def __init__(self, *, max_parallel: int = 4) -> None:
        self._max_parallel = max_parallel
        self._places = asyncio.Semaphore(max_parallel)
        self._opening = asyncio.Lock()
        self._pool: Monty | None = None

    async def run_python(
        self,
        function_source: str,
        arguments: JsonObject,
        limits: SandboxLimits = DEFAULT_LIMITS,
        *,
        imports: frozenset[str] = frozenset(),
    ) -> SandboxResult:
        try:
            sent = orjson.dumps(arguments).decode()
            prepared = prepare(function_source, imports, limits.output_bytes)
        except TypeError as error:
            return Stopped(StopCategory.ERROR, f"The arguments are not JSON: {error}.")
        except Forbidden as error:
            return Stopped(StopCategory.FORBIDDEN, str(error))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return Stopped(StopCategory.ERROR, f"The code cannot be compiled: {error}")
        async with self._places:
            try:
                pool = await self._open()
            except (ImportError, OSError) as error:
                return Stopped(
                    StopCategory.UNAVAILABLE, explain_missing(error) or f"Monty can't start: {error}"
                )
            return await _run(_Call(pool, prepared, sent, limits))

    async def aclose(self) -> None:
        """End all workers. A later call starts new ones."""
        async with self._opening:
            pool, self._pool = self._pool, None
            if pool is not None:
                await asyncio.to_thread(pool.__exit__, None, None, None)

    async def _open(self) -> "Monty":
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncio.to_thread(_open_pool, self._max_parallel)
            return self._pool


def _open_pool(max_parallel: int) -> "Monty":
    if sys.platform != "linux":
        raise OSError("it needs Linux, whose kernel confines the workers")
    # Not AsyncMonty, which aborts the process if it exits soon after a call.
    from pydantic_monty import Monty  # noqa: PLC0415

    return Monty(min_processes=0, max_processes=max_parallel).__enter__()


async def _run(call: "_Call") -> SandboxResult:
    running = asyncio.create_task(asyncio.to_thread(call.run))
    try:
        async with asyncio.timeout(call.limits.wall_s):
            return await asyncio.shield(running)
    except TimeoutError:
        return Stopped(StopCategory.TIMEOUT, f"The code took longer than {call.limits.wall_s:g} seconds.")
    finally:
        if not running.done():
            call.kill()
            await asyncio.wait({running})
        call.close()


class _Call:
    """A call that runs in a thread. Other threads can end it with `kill`."""

    def __init__(self, pool: "Monty", prepared: Prepared, arguments: str, limits: SandboxLimits) -> None:
        self._pool = pool
        self._prepared = prepared
        self._arguments = arguments
        self.limits = limits
        self._worker: int | None = None
        self._is_over = False

    def run(self) -> SandboxResult:
        from pydantic_monty import (  # noqa: PLC0415
            MontyCrashedError,
            MontyError,
            MontyRuntimeError,
            MontySyntaxError,
        )

        try:
            return self._run()
        except MontyRuntimeError as error:
            return _explain(error, self._prepared)
        except MontySyntaxError as error:
            return Stopped(StopCategory.ERROR, f"The code cannot be compiled: {error}")
        except MontyCrashedError as error:
            is_memory = "SIGABRT" in str(error) or "SIGKILL" in str(error)
            category = StopCategory.MEMORY if is_memory else StopCategory.ERROR
            return Stopped(
                category, "The code crashed the interpreter, probably because it used too much memory."
            )
        except (MontyError, OSError) as error:
            return Stopped(StopCategory.UNAVAILABLE, f"The code can't run on this system: {error}.")

    def _run(self) -> SandboxResult:
        bounds: ResourceLimits = {
            "max_feed_duration_secs": self.limits.cpu_s,
            "max_memory": self.limits.memory_bytes,
        }
        with self._pool.checkout(
            limits=bounds, assert_message_annotations=False, os_policy={"sleep": "zero"}
        ) as session:
            worker = session.worker_pid
            if worker is None:
                return Stopped(StopCategory.UNAVAILABLE, "The interpreter has exited.")
            _confine(worker, self.limits)
            self._worker = os.pidfd_open(worker)
            if self._is_over:
                return Stopped(StopCategory.TIMEOUT, "The call is over.")
            try:
                return self._feed(session)
            finally:
                if _memory_bytes(worker) > KEPT_BYTES:
                    self.kill()

    def _feed(self, session: "MontySession") -> SandboxResult:
        if self._prepared.library:
            session.feed_run(self._prepared.library)
        inputs = {self._prepared.arguments: self._arguments}
        written = session.feed_run(self._prepared.code, inputs=inputs, print_callback=_discard)
        return _read(written, self.limits)

    def kill(self) -> None:
        self._is_over = True
        if self._worker is not None:
            with contextlib.suppress(ProcessLookupError):  # the worker has just exited
                signal.pidfd_send_signal(self._worker, signal.SIGKILL)

    def close(self) -> None:
        if self._worker is not None:
            os.close(self._worker)


def _confine(worker: int, limits: SandboxLimits) -> None:
    """Limit the worker in the kernel, in addition to the limits of the interpreter."""
    for kind in NOTHING_NEW:
        resource.prlimit(worker, kind, (0, 0))
    _, hard = resource.prlimit(worker, resource.RLIMIT_AS)
    wanted = 2 * limits.memory_bytes + INTERPRETER_BYTES
    resource.prlimit(worker, resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))


def _memory_bytes(worker: int) -> int:
    """Return the worker's resident memory, or 0 if it has exited."""
    try:
        return int(Path(f"/proc/{worker}/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _discard(_stream: str, _text: str) -> None:
    """Ignore what the code prints."""


def _read(written: Any, limits: SandboxLimits) -> SandboxResult:
    if not isinstance(written, str):
        return Stopped(StopCategory.ERROR, "The result is not valid JSON.")
    if len(written) > limits.output_bytes:
        return Stopped(
            StopCategory.OUTPUT_TOO_LARGE,
            f"The result has more than {limits.output_bytes} bytes as JSON; return less.",
        )
    try:
        return Returned(orjson.loads(written))
    except orjson.JSONDecodeError:
        return Stopped(StopCategory.ERROR, "The result is not valid JSON.")


def _explain(error: "MontyRuntimeError", prepared: Prepared) -> Stopped:
    kind, _, text = str(error).partition(": ")
    if kind in _STOPPED_BY:
        return _STOPPED_BY[kind]
    if kind == "PermissionError":
        return Stopped(StopCategory.FORBIDDEN, f"The code tried to use a file: {text}.")
    lines = [
        frame.line for frame in error.traceback() if frame.function_name and frame.line <= prepared.lines
    ]
    where = f" on line {lines[-1]}" if lines else ""
    hint = next((f". {hint}" for part, hint in _HINTS.items() if part in text), "")
    return Stopped(StopCategory.ERROR, f"{kind}{where}: {text[:500]}{hint}")
