"""A gateway with authentication, over the in-memory stores."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.gateway.guarded import GuardedHouse, guarded_house


@pytest.fixture
async def house() -> AsyncIterator[GuardedHouse]:
    async with guarded_house() as house:
        yield house
