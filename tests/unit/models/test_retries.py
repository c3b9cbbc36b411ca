"""CO-2: backoff with full jitter, and the endpoint's retry delay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import (
    CircuitOpen,
    ModelFailed,
    ModelNotAllowed,
    ModelRejected,
    ModelTimedOut,
    RateLimited,
)
from orchestrator.models.retries import RetryPolicy

POLICY = RetryPolicy(attempts=4, base_s=0.5, cap_s=1.5, longest_wait_s=5)
PASSING = [ModelFailed("down"), ModelTimedOut("slow"), RateLimited("busy")]


async def fail(policy: RetryPolicy, error: Exception, *, in_time=lambda _wait: True, may_retry=lambda: True):
    """Return the waits between attempts that all fail with the same error, which is raised unchanged."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def run() -> None:
        async for attempt in policy.retrying(sleep, in_time, may_retry):
            with attempt:
                raise error

    with pytest.raises(type(error)) as caught:
        await run()
    assert caught.value is error
    return waits


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
async def test_the_longest_wait_doubles_up_to_the_cap(error):
    for _ in range(20):
        waits = await fail(POLICY, error)
        assert len(waits) == 3
        assert all(0 <= wait <= longest for wait, longest in zip(waits, [0.5, 1.0, 1.5], strict=True))


async def test_jitter_is_full():
    first = [(await fail(POLICY, ModelFailed("down")))[0] for _ in range(200)]

    assert min(first) < 0.1
    assert max(first) > 0.4


@given(st.floats(0, 5, exclude_max=True))
async def test_the_endpoint_is_obeyed_and_never_asked_earlier(asked):
    policy = RetryPolicy(attempts=2, base_s=0.5, longest_wait_s=10)
    (wait,) = await fail(policy, RateLimited("busy", retry_after_s=asked))

    assert asked <= wait <= asked + 0.5


async def test_a_wait_that_is_too_long_is_not_waited_for():
    assert await fail(POLICY, RateLimited("busy", retry_after_s=60)) == []


async def test_a_wait_beyond_the_time_that_is_left_is_not_waited_for():
    assert await fail(POLICY, RateLimited("busy", retry_after_s=2), in_time=lambda wait: wait < 2) == []


async def test_what_may_not_be_tried_again_is_not():
    assert await fail(POLICY, ModelFailed("down"), may_retry=lambda: False) == []


@pytest.mark.parametrize(
    "error",
    [ModelRejected("too long"), ModelNotAllowed("bad key"), CircuitOpen("open", retry_after_s=1)],
    ids=lambda error: error.code,
)
async def test_what_a_retry_cannot_change_is_not_retried(error):
    assert await fail(POLICY, error) == []
