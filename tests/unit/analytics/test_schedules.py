"""When standing orders for reports are due."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from domains.analytics.tools.schedules import last_due

MADE = "2026-01-31 10:30"  # a Saturday


def moment(written: str) -> float:
    return datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("order", "now", "due"),
    [
        ({"every": "day", "at": "09:00"}, "2026-02-03 09:00", "2026-02-03 09:00"),
        ({"every": "day", "at": "09:00"}, "2026-02-03 08:59", "2026-02-02 09:00"),
        ({"every": "day"}, "2026-02-03 10:29", "2026-02-02 10:30"),
        ({"every": "week", "weekday": "monday", "at": "09:00"}, "2026-02-02 09:00", "2026-02-02 09:00"),
        ({"every": "week", "weekday": "monday", "at": "09:00"}, "2026-02-02 08:00", "2026-01-26 09:00"),
        ({"every": "week", "weekday": "sunday", "at": "23:59"}, "2026-02-02 00:00", "2026-02-01 23:59"),
        ({"every": "week"}, "2026-02-09 00:00", "2026-02-07 10:30"),
        ({"every": "month"}, "2026-03-01 00:00", "2026-02-28 10:30"),
        ({"every": "month", "at": "00:00"}, "2026-03-31 00:00", "2026-03-31 00:00"),
        ({"every": "month"}, "2027-01-15 00:00", "2026-12-31 10:30"),
    ],
)
def test_the_latest_time_that_is_not_in_the_future(order: dict[str, Any], now: str, due: str) -> None:
    given = {"weekday": None, "at": None, "made_at": moment(MADE), **order}
    assert last_due(given, moment(now)) == moment(due)
