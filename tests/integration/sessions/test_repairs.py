"""RT-35: broken sessions are repaired on real stores like in memory."""

from __future__ import annotations

import random

import pytest

from tests.unit.gateway.repairs.broken_sessions import KINDS, Site, break_one
from tests.unit.gateway.repairs.repairing import goes_on, judge, repair_one
from tests.unit.gateway.repairs.test_broken_sessions import BY, LONG, exceed


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(len(KINDS), marks=pytest.mark.timeout(600)),
        pytest.param(LONG, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
async def test_one_of_each_kind_is_repaired(site: tuple[Site, dict[str, dict[str, str]]], count: int) -> None:
    (place, headers), numbers, found = site, random.Random(3), []
    for number in range(count):
        ticket = await break_one(place, number, numbers)
        found += await exceed(place, ticket, headers)
        wrong = await repair_one(place, ticket)
        found += wrong or await judge(place, ticket, BY)
        found += wrong or await goes_on(place, ticket)
    assert found == []
