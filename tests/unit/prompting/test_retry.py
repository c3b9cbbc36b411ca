"""CO-2: backoff with full jitter, and what the endpoint asked for."""

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
from orchestrator.models.breaker import RetryPolicy, wait_before_retry

POLICY = RetryPolicy(attempts=4, base_s=0.5, cap_s=1.5, longest_wait_s=5)
PASSING = [ModelFailed("down", status=503), ModelTimedOut("slow"), RateLimited("busy")]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
def test_the_longest_wait_doubles_up_to_the_cap(error):
    waits = [wait_before_retry(POLICY, failed, error, lambda: 1.0) for failed in (1, 2, 3, 4)]

    assert waits == [0.5, 1.0, 1.5, None]


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True), st.integers(1, 60))
def test_jitter_is_full(failed, chance, attempts):
    policy = RetryPolicy(attempts=attempts, base_s=0.5, cap_s=8)
    wait = wait_before_retry(policy, failed, ModelFailed("down"), lambda: chance)

    if failed >= attempts:
        assert wait is None
    else:
        assert wait == chance * min(8, 0.5 * 2 ** (failed - 1))


def test_the_endpoint_is_obeyed_and_never_asked_earlier():
    assert wait_before_retry(POLICY, 1, RateLimited("busy", retry_after_s=3), lambda: 0.0) == 3
    assert wait_before_retry(POLICY, 1, RateLimited("busy", retry_after_s=3), lambda: 0.5) == 3.25


def test_a_wait_that_is_too_long_is_not_waited_for():
    assert wait_before_retry(POLICY, 1, RateLimited("busy", retry_after_s=60), lambda: 0.0) is None


@pytest.mark.parametrize(
    "error",
    [ModelRejected("too long"), ModelNotAllowed("bad key"), CircuitOpen("open", retry_after_s=1)],
    ids=lambda error: error.code,
)
def test_what_a_retry_cannot_change_is_not_retried(error):
    assert wait_before_retry(POLICY, 1, error, lambda: 0.0) is None
