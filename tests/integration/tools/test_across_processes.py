"""PX-8: rate limits and caches apply to all workers together."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.tools.web import Web, serve
from tests.processes.forked import run


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    with serve(web.application()) as web.url:
        yield web


async def run_worker(redis_url: str, url: str, calls: int, **keys: Any) -> list[bool]:
    """Run a separate process. Return True for each answered call."""
    words = ("-m", "tests.integration.tools.worker", redis_url, url, str(calls), json.dumps(keys))
    ended = await asyncio.to_thread(run, words, environment=os.environ)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


async def test_two_workers_together_keep_to_the_limit(redis_url: str, web: Web):
    url = web.url + "/echo/x"
    workers = (run_worker(redis_url, url, 10, rate_limit_rpm=7) for _ in range(2))

    first, second = await asyncio.gather(*workers)

    assert sum(first) + sum(second) == 7
    assert len(web.asked) == 7


async def test_one_worker_answers_from_what_the_other_was_told(redis_url: str, web: Web):
    url = web.url + "/echo/x"

    first = await run_worker(redis_url, url, 1, cache_ttl_ms=60_000)
    second = await run_worker(redis_url, url, 5, cache_ttl_ms=60_000)

    assert first == [True]
    assert second == [True] * 5
    assert len(web.asked) == 1
