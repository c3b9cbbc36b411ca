"""PX-8: rate limits and caches hold for all workers together."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tools.web import Web, serve

ROOT = Path(__file__).parents[3]


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    with serve(web.application()) as web.url:
        yield web


async def run_worker(redis_url: str, url: str, calls: int, **keys: Any) -> list[bool]:
    """Run a process of its own; True for each call that was answered."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.integration.tools.worker", redis_url, url, str(calls), json.dumps(keys)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(output.splitlines()[-1])


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
