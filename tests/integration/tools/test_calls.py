"""PX-8, PX-9: stages of a call: limits, cache, retries, timeouts, output checks."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from orchestrator.adapters.redis.shared import RedisRateLimits, RedisToolCache
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.tools.middleware import ORPHANS_PER_TOOL, ToolPorts
from orchestrator.tools.threads import THREADS_PER_TOOL
from orchestrator.tools.toolbox import ToolData, ToolError
from orchestrator.turns.step import UnknownOutcome
from tests.integration.tools.factories import Caller, schema, service_tool, until
from tests.wording import english

ARGUMENTS = schema(a="integer", b="integer")


@dataclass
class Things:
    """A service. `release`: continues hanging calls. `failures`: errors of the next calls."""

    called: int = 0
    failures: list[Exception] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    running: int = 0
    most_running: int = 0
    ended: int = 0

    async def count(self, **given: Any) -> dict[str, Any]:
        self.called += 1
        if self.failures:
            raise self.failures.pop(0)
        return {"count": self.called}

    def hang(self) -> dict[str, Any]:
        self.called += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.release.wait()
        self.running -= 1
        self.ended += 1
        return {"count": self.called}

    def look(self) -> dict[str, Any]:
        return {"seen": "a hat"}

    async def ignore_cancellation(self) -> dict[str, Any]:
        self.called += 1
        while not self.release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        self.ended += 1
        return {}

    async def huge(self) -> dict[str, Any]:
        return {"text": "x" * 10_000_000}

    async def many(self) -> dict[str, Any]:
        return {"rows": [{"text": "x" * 100}] * 100_000}

    async def odd(self) -> dict[str, Any]:
        return {"value": object()}

    async def leave(self) -> dict[str, Any]:
        sys.exit(1)

    def leave_thread(self) -> dict[str, Any]:
        sys.exit(1)

    async def no_object(self) -> Any:
        return [1]


@pytest.fixture
def things() -> Any:
    things = Things()
    yield things
    things.release.set()


def caller_of(things: Things, *tools: Any, **options: Any) -> Caller:
    return Caller(*tools, services={"Things": things}, **options)


async def test_answers_of_idempotent_tools_are_kept(things: Things):
    tool = service_tool("Things.count", inputs=ARGUMENTS, cache_ttl_ms=60_000)
    caller = caller_of(things, tool)

    first = await caller.call(a=1, b=2)
    again = await caller.call(b=2, a=1)
    other = await caller.call(a=1, b=3)

    assert first == again == ToolData({"count": 1})
    assert other == ToolData({"count": 2})


async def test_answers_of_changes_are_never_kept(things: Things):
    tool = service_tool("Things.count", idempotent=False, cache_ttl_ms=60_000)
    caller = caller_of(things, tool)

    assert await caller.call() != await caller.call()


async def test_errors_are_never_kept(things: Things):
    things.failures = [ToolFailure("not_found", "No.")]
    caller = caller_of(things, service_tool("Things.count", cache_ttl_ms=60_000))

    assert isinstance(await caller.call(), ToolError)
    assert await caller.call() == ToolData({"count": 2})


@pytest.mark.parametrize("is_private", [True, False])
async def test_private_data_is_kept_for_one_user_only(things: Things, is_private: bool):
    tool = service_tool("Things.count", cache_ttl_ms=60_000, accesses_private_data=is_private)
    caller = caller_of(things, tool)

    answers = [await caller.call(user=user) for user in ("ada", "ada", "bob", None, None)]

    counts = [answer.data["count"] for answer in answers if isinstance(answer, ToolData)]
    assert counts == ([1, 1, 2, 3, 4] if is_private else [1, 1, 1, 1, 1])


async def test_tenants_do_not_see_each_others_answers(things: Things):
    caller = caller_of(things, service_tool("Things.count", cache_ttl_ms=60_000))

    assert await caller.call(tenant="north") != await caller.call(tenant="south")


async def test_a_tool_that_changed_does_not_answer_as_before(things: Things):
    ports = ToolPorts()
    before = caller_of(things, service_tool("Things.count", cache_ttl_ms=60_000), ports=ports)
    changed = service_tool("Things.count", cache_ttl_ms=60_000, output_schema=schema(count="integer"))
    after = caller_of(things, changed, ports=ports)

    assert await before.call() != await after.call()


async def test_a_tool_is_not_called_more_often_than_its_limit(things: Things):
    caller = caller_of(things, service_tool("Things.count", rate_limit_rpm=2))

    results = [await caller.call() for _ in range(3)]

    assert things.called == 2
    refused = results[2]
    assert isinstance(refused, ToolError)
    assert refused.category is FailureCategory.RATE_LIMIT
    assert "try again in" in english(refused.message)


async def test_a_change_that_the_limit_held_back_was_not_made(things: Things):
    caller = caller_of(things, service_tool("Things.count", rate_limit_rpm=1, idempotent=False))
    await caller.call()

    assert isinstance(await caller.call(), ToolError), "not an unknown outcome"


async def test_the_limit_counts_attempts_and_not_what_the_cache_knows(things: Things):
    things.failures = [ToolFailure("server_error", "No.")]
    tool = service_tool(
        "Things.count", inputs=ARGUMENTS, rate_limit_rpm=3, max_retries=1, cache_ttl_ms=60_000
    )
    caller = caller_of(things, tool)

    await caller.call(a=1)  # two attempts
    cached = [await caller.call(a=1) for _ in range(5)]
    third = await caller.call(a=2)
    await caller.refused(a=3)

    assert cached == [ToolData({"count": 2})] * 5
    assert third == ToolData({"count": 3})


async def test_without_redis_each_process_counts_for_itself_and_keeps_nothing(things: Things):
    tool = service_tool("Things.count", rate_limit_rpm=3, cache_ttl_ms=60_000)
    async with Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=1) as redis:
        ports = ToolPorts(None, RedisRateLimits(redis), RedisToolCache(redis))
        caller = caller_of(things, tool, ports=ports)
        with capture_logs() as logs:
            results = [await caller.call() for _ in range(4)]

    assert [isinstance(result, ToolData) for result in results] == [True, True, True, False]
    assert things.called == 3
    away = [line["store"] for line in logs if line["event"] == "A shared store is unavailable."]
    assert sorted(away) == ["rate limits", "tool cache"]


@pytest.mark.parametrize("category", ["rate_limit", "timeout", "server_error"])
async def test_idempotent_tools_are_tried_again_after_what_may_pass(things: Things, category: str):
    things.failures = [ToolFailure(category, "No.")] * 2
    caller = caller_of(things, service_tool("Things.count", max_retries=2))

    assert await caller.call() == ToolData({"count": 3})


@pytest.mark.parametrize("category", ["validation_error", "auth_error", "not_found"])
async def test_what_does_not_pass_is_told_at_once(things: Things, category: str):
    things.failures = [ToolFailure(category, "No.")]
    caller = caller_of(things, service_tool("Things.count", max_retries=2))

    assert await caller.call() == ToolError(FailureCategory(category), "No.")
    assert things.called == 1


async def test_changes_are_never_tried_again(things: Things):
    things.failures = [ToolFailure("server_error", "No.")]
    caller = caller_of(things, service_tool("Things.count", max_retries=2, idempotent=False))

    assert await caller.call() == ToolError(FailureCategory.SERVER_ERROR, "No.")
    assert things.called == 1


@pytest.mark.parametrize("target", ["huge", "many", "odd", "no_object", "leave", "leave_thread"])
async def test_what_cannot_be_used_is_an_error_of_this_call_alone(things: Things, target: str):
    tools = [service_tool(f"Things.{target}", "thing_break"), service_tool("Things.count", "thing_count")]
    caller = caller_of(things, *tools)

    result = await caller.refused("thing_break")

    assert (result.category, result.undecided) == (FailureCategory.SERVER_ERROR, True)
    assert await caller.call("thing_count") == ToolData({"count": 1})


async def test_what_cannot_be_used_of_a_change_leaves_its_outcome_unknown(things: Things):
    caller = caller_of(things, service_tool("Things.huge", idempotent=False))

    assert isinstance(await caller.call(), UnknownOutcome)


@pytest.mark.parametrize("target", ["hang", "ignore_cancellation"])
async def test_tools_that_hang_are_called_a_bounded_number_of_times(things: Things, target: str):
    tools = [
        service_tool(f"Things.{target}", "thing_hang", timeout_ms=20),
        service_tool("Things.count", "thing_count"),
    ]
    caller = caller_of(things, *tools)

    results = [await caller.call("thing_hang") for _ in range(ORPHANS_PER_TOOL + 5)]

    assert {result.category for result in results if isinstance(result, ToolError)} == {
        FailureCategory.TIMEOUT
    }
    assert things.called == ORPHANS_PER_TOOL
    assert things.ended == 0
    assert await caller.call("thing_count") == ToolData({"count": ORPHANS_PER_TOOL + 1})

    things.release.set()
    await until(lambda: things.ended == ORPHANS_PER_TOOL)
    assert isinstance(await _eventually(caller, "thing_hang"), ToolData)


async def _eventually(caller: Caller, tool_id: str) -> object:
    """Call until the runner has noticed the end of the hanging calls."""
    while True:
        result = await caller.call(tool_id)
        if not isinstance(result, ToolError):
            return result
        await asyncio.sleep(0)


async def test_a_tool_takes_a_part_of_the_threads_only(things: Things):
    caller = caller_of(things, service_tool("Things.hang", timeout_ms=60_000))
    calls = [asyncio.create_task(caller.call()) for _ in range(THREADS_PER_TOOL + 4)]
    await until(lambda: things.running == THREADS_PER_TOOL)

    things.release.set()
    results = await asyncio.gather(*calls)

    assert things.most_running == THREADS_PER_TOOL
    assert all(isinstance(result, ToolData) for result in results)


async def test_tools_that_hang_leave_every_other_tool_its_threads(things: Things):
    """PX-9: many tools hang in all threads that they may take."""
    bad = [f"thing_hang{number}" for number in range(6)]
    tools = [service_tool("Things.hang", name, timeout_ms=60_000) for name in bad]
    good = service_tool("Things.look", "thing_look", timeout_ms=60_000)
    caller = caller_of(things, *tools, good)
    hanging = [asyncio.create_task(caller.call(name)) for name in bad for _ in range(THREADS_PER_TOOL)]
    await until(lambda: things.running == len(hanging))

    results = [await asyncio.wait_for(caller.call("thing_look"), 30) for _ in range(20)]
    together = await asyncio.wait_for(asyncio.gather(*(caller.call("thing_look") for _ in range(20))), 30)

    assert {type(result) for result in (*results, *together)} == {ToolData}
    assert not any(call.done() for call in hanging)
    things.release.set()
    assert {type(result) for result in await asyncio.gather(*hanging)} == {ToolData}


async def test_given_up_calls_of_many_tools_leave_every_other_tool_its_threads(things: Things):
    """PX-9: nothing waits for them any more, and their threads never end."""
    bad = [f"thing_hang{number}" for number in range(6)]
    tools = [service_tool("Things.hang", name, timeout_ms=200) for name in bad]
    caller = caller_of(things, *tools, service_tool("Things.look", "thing_look", timeout_ms=60_000))
    given_up = await asyncio.gather(*(caller.call(name) for name in bad for _ in range(THREADS_PER_TOOL)))

    result = await asyncio.wait_for(caller.call("thing_look"), 30)

    assert {type(error) for error in given_up} == {ToolError}
    assert things.ended == 0
    assert result == ToolData({"seen": "a hat"})
