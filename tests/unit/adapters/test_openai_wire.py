"""CO-2: reading what an OpenAI-compatible endpoint asks to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from orchestrator.adapters.openai.wire import retry_after_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1 hour"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "many"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_seconds_milliseconds_and_nonsense(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_a_date_is_so_far_away_as_it_is():
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    asked = retry_after_s({"retry-after": in_an_hour})

    assert asked is not None
    assert 3000 < asked <= 3600
