"""FS-8 … FS-13, PL-4, ST-1 … ST-3: no sequence of operations violates the invariants."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.dialogue.driver import OPERATIONS, Driver

STEPS_PER_SESSION = 200


class Operations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()

    @rule(operation=st.sampled_from(tuple(OPERATIONS)), number=st.integers(0, 10_000))
    def operate(self, operation: str, number: int) -> None:
        OPERATIONS[operation](self.driver, number)

    @invariant()
    def holds(self) -> None:
        self.driver.check()

    def teardown(self) -> None:
        self.driver.commit(0)
        self.driver.check_history()


Operations.TestCase.settings = settings(max_examples=50, stateful_step_count=40)
TestOperations = Operations.TestCase


def drive(steps: int, seed: int) -> Counter[str]:
    """Run random sessions of 200 steps. Return how often each operation ran."""
    numbers = random.Random(seed)
    names = [*OPERATIONS, *["push", "plan", "replan", "resume"] * 4]
    done: Counter[str] = Counter()
    while done.total() < steps:
        driver = Driver()
        for _ in range(STEPS_PER_SESSION):
            name = numbers.choice(names)
            OPERATIONS[name](driver, numbers.randrange(10_000))
            driver.check()
            done[name] += 1
        driver.commit(0)
        driver.check_history()
    return done


def test_short_form() -> None:
    assert set(drive(1_000, seed=1)) == set(OPERATIONS)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_long_form() -> None:
    assert drive(100_000, seed=2).total() >= 100_000
