"""A variant of `benchmarks.echo` that runs each turn in a separate Celery task, to measure the cost of messages."""

import asyncio

from benchmarks.echo import app as app  # noqa: PLC0414  # Celery looks for `app` here
from orchestrator.types import SessionId
from workers.session_pool import SessionPool


async def _run_to_the_end(pool: SessionPool, session_id: SessionId) -> None:
    pool.start(session_id)
    if (running := pool._running.get(session_id)) is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait([running])


SessionPool.wake = _run_to_the_end
