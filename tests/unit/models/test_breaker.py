"""CO-2: the circuit breaker, as a transition table and with requests."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import CircuitOpen, IllegalTransition, ModelFailed
from orchestrator.models.breaker import (
    TRANSITIONS,
    Breaker,
    BreakerPolicy,
    Circuit,
    CircuitEvent,
    CircuitState,
    CircuitView,
    advance,
)
from tests.cases import for_each

DOWN = ModelFailed("down")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_breaker(clock: Clock, *, threshold: int = 3, cooling_s: float = 10.0):
    changes: list[CircuitView] = []
    policy = BreakerPolicy(threshold, cooling_s)
    return Breaker("http://one/v1", "small", policy, clock, changes.append), changes


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.failed(breaker.admit(), DOWN)


@for_each(("state", "event"), list(itertools.product(CircuitState, CircuitEvent)))
def test_the_table_decides_every_pair_of_state_and_event(state, event):
    circuit = Circuit(state)

    if (state, event) in TRANSITIONS:
        assert advance(circuit, event, 1.0).state is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition):
            advance(circuit, event, 1.0)


def test_it_opens_at_the_threshold_and_says_when_to_come_back():
    clock = Clock()
    breaker, changes = make_breaker(clock)

    fail(breaker, 2)
    assert breaker.would_admit
    fail(breaker, 1)

    clock.now += 4
    assert not breaker.would_admit
    with pytest.raises(CircuitOpen) as caught:
        breaker.admit()
    assert caught.value.retry_after_s == 6.0
    assert [change.state for change in changes] == [CircuitState.OPEN]
    assert breaker.view() == CircuitView(
        "http://one/v1", "small", CircuitState.OPEN, 3, 6.0, problem="model_failed", never_answered=True
    )


def test_after_cooling_one_probe_passes_and_its_success_closes():
    clock = Clock()
    breaker, changes = make_breaker(clock)
    fail(breaker, 3)
    clock.now += 10

    probe = breaker.admit()

    assert not breaker.would_admit
    with pytest.raises(CircuitOpen):
        breaker.admit()
    breaker.succeeded(probe)
    assert breaker.would_admit
    states = [change.state for change in changes]
    assert states == [CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED]


def test_late_answers_from_before_the_opening_decide_nothing():
    clock = Clock()
    breaker, _ = make_breaker(clock)
    late_success, late_failure = breaker.admit(), breaker.admit()
    fail(breaker, 3)

    breaker.succeeded(late_success)
    assert breaker.state is CircuitState.OPEN

    clock.now += 10
    probe = breaker.admit()
    breaker.failed(late_failure, DOWN)
    assert breaker.state is CircuitState.HALF_OPEN
    breaker.succeeded(probe)
    assert breaker.state is CircuitState.CLOSED


@given(
    st.integers(1, 5),
    st.lists(
        st.tuples(st.sampled_from(["admit", "succeed", "fail", "release", "wait"]), st.integers(0, 9)),
        max_size=80,
    ),
)
def test_whatever_happens_the_breaker_keeps_its_promises(threshold, steps):
    clock = Clock()
    breaker, changes = make_breaker(clock, threshold=threshold)
    permits: list = []

    for action, number in steps:
        before = breaker.view()
        if action == "wait":
            clock.now += number
        elif action == "admit":
            admits = breaker.would_admit
            try:
                permits.append(breaker.admit())
            except CircuitOpen:
                assert not admits
            else:
                assert admits
        elif permits:
            permit = permits.pop(number % len(permits))
            {
                "succeed": breaker.succeeded,
                "fail": lambda permit: breaker.failed(permit, DOWN),
                "release": breaker.released,
            }[action](permit)
        if breaker.state is CircuitState.OPEN and before.state is CircuitState.CLOSED:
            assert breaker.view().failures >= threshold
        assert breaker.view().retry_in_s <= 10.0

    outstanding = {permit.generation for permit in permits if permit.probe}
    assert len(outstanding) == len([permit for permit in permits if permit.probe])
    states = [CircuitState.CLOSED, *(change.state for change in changes)]
    assert all(one is not other for one, other in itertools.pairwise(states))

    # From any state, a healthy endpoint closes it again.
    for permit in permits:
        breaker.released(permit)
    clock.now += 10
    breaker.succeeded(breaker.admit())
    assert breaker.state is CircuitState.CLOSED
