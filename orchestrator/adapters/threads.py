"""Threads for the runtime's own blocking calls: few, and separate from domain code.

Domain code can fill asyncio's default threads with hanging calls without blocking messages and agents.
"""

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

THREADS = 8

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class _Pool:
    """Threads do not survive a fork, so a child starts without any."""

    def __init__(self) -> None:
        self.executor: ThreadPoolExecutor
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="runtime")


_pool = _Pool()


async def run_in_thread(
    work: Callable[_Given, _Result], /, *arguments: _Given.args, **named: _Given.kwargs
) -> _Result:
    """Run `work` in one of the runtime's threads, in the caller's context."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool.executor, lambda: context.run(work, *arguments, **named))
