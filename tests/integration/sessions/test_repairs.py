"""RT-35: broken sessions are repaired on real stores like in memory."""

from __future__ import annotations

import random

import pytest

from tests.unit.gateway.repairs.broken_sessions import KINDS, Site, break_one
from tests.unit.gateway.repairs.repairing import goes_on, judge, repair_one
from tests.unit.gateway.repairs.test_broken_sessions import BY, LONG, exceed


async def _repair(place: tuple[Site, dict[str, dict[str, str]]], count: int) -> list[str]:
    (site, headers), numbers, found = place, random.Random(3), []
    for number in range(count):
        ticket = await break_one(site, number, numbers)
        found += await exceed(site, ticket, headers)
        wrong = await repair_one(site, ticket)
        found += wrong or await judge(site, ticket, BY)
        found += wrong or await goes_on(site, ticket)
    return found


@pytest.mark.timeout(600)
async def test_one_of_each_kind_is_repaired(site: tuple[Site, dict[str, dict[str, str]]]) -> None:
    assert await _repair(site, len(KINDS)) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_many_are_repaired(site: tuple[Site, dict[str, dict[str, str]]]) -> None:
    assert await _repair(site, LONG) == []
