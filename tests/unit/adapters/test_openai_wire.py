"""CO-2: what is read of an OpenAI-compatible endpoint's refusals: how long to wait, and why."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import openai
import pytest

from orchestrator.adapters.openai.wire import retry_after_s, translate
from orchestrator.types import JsonObject


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


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, {"code": "invalid_api_key", "type": "x_error"}, " (invalid_api_key)"),
        (400, {"code": None, "type": "invalid_request_error"}, " (invalid_request_error)"),
        (500, {"code": "you said: xylophone"}, ""),
        (500, {"code": 7}, ""),
        (429, None, ""),
    ],
)
def test_an_endpoints_own_words_are_not_repeated(status: int, body: JsonObject | None, reason: str) -> None:
    """RT-22: it may quote the key, or what it was asked; users, logs and the journal are told its code."""
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://model/v1/chat/completions"))
    said = "Incorrect API key sk-canary: you said xylophone"
    error = openai.APIStatusError(said, response=response, body=body)
    told = str(translate(error, "http://model/v1"))
    assert told == f"The model endpoint http://model/v1 answered {status}{reason}."
