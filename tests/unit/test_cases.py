"""Cases that run as subtests: each case runs, and each failure names its case."""

from __future__ import annotations

import re

import pytest

from tests.cases import for_each

pytest_plugins = ["pytester"]

FAILING = """
import pytest
from tests.cases import for_each

@for_each("letter", ["a", "b"])
@for_each("number", [1, 2])
def test_nested(number, letter):
    assert letter == "a"

@for_each(("one", "other"), [(1, 1), pytest.param(1, 2, id="different")])
def test_named(one, other):
    assert one == other
"""


def test_each_case_runs_and_each_failure_names_its_case(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)

    found = pytester.runpytest_inprocess("-p", "no:asyncio")

    assert found.parseoutcomes()["failed"] == 5, "three cases and their two tests"
    assert re.findall(r"^_+ (\w+ \[.+\]) _+$", found.stdout.str(), re.MULTILINE) == [
        "test_nested [1]",
        "test_nested [2]",
        "test_named [different]",
    ]


@for_each("number", [1, 2])
async def test_cases_may_await(number: int, request: pytest.FixtureRequest) -> None:
    assert number in {1, 2}
    assert request.node.name == "test_cases_may_await"


def test_there_is_always_a_case() -> None:
    with pytest.raises(AssertionError, match="There are no cases"):
        for_each("number", [])
