"""Cases that run as one test: each runs, and each failure names its case."""

from __future__ import annotations

import pytest

from tests.cases import for_each


def test_each_case_runs_and_each_failure_names_its_case() -> None:
    ran = list[tuple[int, str]]()

    @for_each("letter", ["a", "b"])
    @for_each("number", [1, 2])
    def check(number: int, letter: str) -> None:
        ran.append((number, letter))
        assert letter == "a"

    with pytest.raises(ExceptionGroup, match="2 of 2 cases failed") as raised:
        check()

    assert ran == [(1, "a"), (2, "a"), (1, "b"), (2, "b")]
    assert [one.__notes__ for one in raised.value.exceptions] == [["Case: 1"], ["Case: 2"]]
    assert raised.value.__notes__ == ["Case: 'b'"]


async def test_cases_may_await() -> None:
    @for_each(("one", "other"), [(1, 1), pytest.param(1, 2, id="different")])
    async def check(one: int, other: int) -> None:
        assert one == other

    with pytest.raises(AssertionError) as raised:
        await check()

    assert raised.value.__notes__ == ["Case: different"]


@for_each("number", [1, 2])
def test_fixtures_are_passed_on(number: int, request: pytest.FixtureRequest) -> None:
    assert request.node.name == "test_fixtures_are_passed_on"


def test_there_is_always_a_case() -> None:
    with pytest.raises(AssertionError, match="There are no cases"):
        for_each("number", [])(lambda number: None)()
