"""Threads that domain code cannot block (PX-9, RT-18)."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.adapters.threads import run_in_thread

NAME = contextvars.ContextVar[str]("NAME")

AFTER_A_FORK = """
import asyncio, os
from orchestrator.adapters.threads import run_in_thread
assert asyncio.run(run_in_thread(lambda: 1)) == 1
child = os.fork()
if child == 0:
    asyncio.run(asyncio.wait_for(run_in_thread(lambda: 2), 20))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


async def test_work_goes_on_where_every_default_thread_hangs() -> None:
    release = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(2))
    hanging = [asyncio.create_task(asyncio.to_thread(release.wait)) for _ in range(10)]
    try:
        assert await asyncio.wait_for(run_in_thread(sum, [1, 2]), 30) == 3
        assert not any(call.done() for call in hanging)
    finally:
        release.set()
        await asyncio.gather(*hanging)


async def test_work_has_the_context_of_who_asks_and_hands_errors_back() -> None:
    NAME.set("ada")

    assert await run_in_thread(NAME.get) == "ada"
    with pytest.raises(ValueError, match="no number"):
        await run_in_thread(_fail, why="no number")


def _fail(*, why: str) -> None:
    raise ValueError(why)


def test_a_forked_process_has_threads_of_its_own() -> None:
    ended = subprocess.run([sys.executable, "-c", AFTER_A_FORK], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "7"
