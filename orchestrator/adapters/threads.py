"""A small thread pool for the runtime's blocking calls.

It is separate from asyncio's default pool, because hanging calls of domain code can fill that pool.
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
    """A thread pool that is replaced in forked processes, because threads do not survive a fork."""

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
    """Run `work` in one of the runtime's threads, with a copy of the caller's context variables."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool.executor, lambda: context.run(work, *arguments, **named))
