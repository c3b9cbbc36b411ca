"""Fixtures for background flows on sessions over real stores."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.bootstrap import open_lane, open_ports
from orchestrator.settings import Settings
from tests.integration.internal.test_maintenance import House


@pytest.fixture
async def house(database_url: str, redis_url: str) -> AsyncIterator[House]:
    settings = Settings(DATABASE_URL=database_url, REDIS_URL=redis_url)
    async with open_ports(settings) as ports, open_lane(ports) as lane:
        yield House(ports, lane, {})
