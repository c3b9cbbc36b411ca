"""Due times of scheduled reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from domains.analytics.schedules import last_due
from tests.cases import for_each

MADE = "2026-01-31 10:30"  # a Saturday


def moment(written: str) -> float:
    return datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()


@for_each(
    ("order", "now", "due"),
    [
        ({"every": "day"}, "2026-02-03 10:29", "2026-02-02 10:30"),
        ({"every": "day"}, "2026-02-03 10:30", "2026-02-03 10:30"),
        ({"every": "week"}, "2026-02-07 10:29", MADE),
        ({"every": "week"}, "2026-02-09 00:00", "2026-02-07 10:30"),
        ({"every": "month"}, "2026-02-28 10:29", MADE),
        ({"every": "month"}, "2026-03-01 00:00", "2026-02-28 10:30"),
        ({"every": "month"}, "2026-03-31 11:00", "2026-03-31 10:30"),
        ({"every": "month"}, "2027-01-15 00:00", "2026-12-31 10:30"),
    ],
)
def test_the_latest_time_that_is_not_in_the_future(order: dict[str, Any], now: str, due: str) -> None:
    assert last_due({**order, "made_at": moment(MADE)}, moment(now)) == moment(due)
