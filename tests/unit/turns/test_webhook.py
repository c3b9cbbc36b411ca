"""Signatures of webhooks, genuine and forged (RT-16)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable

import pytest

from orchestrator.errors import InvalidInput, Unauthenticated
from orchestrator.turns import webhook
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId
from parley_client import verify_webhook
from tests.cases import for_each
from workers import webhook_posts

SECRET, OLD, WRONG = (webhook.new_secret() for _ in range(3))
EVENT = Event(SessionId("s"), "answer", None, {"reply": "héllo"}, number=7)
BODY = webhook_posts.delivery_body(TenantId("acme"), EVENT)


def headers(*secrets: str, age_s: float = 0.0, body: bytes = BODY) -> dict[str, str]:
    return webhook_posts.signed_headers(
        secrets or (SECRET,), webhook_posts.event_id(EVENT), body, time.time() - age_s
    )


def test_a_genuine_delivery_gives_its_event() -> None:
    event = verify_webhook(SECRET, headers(age_s=5), BODY)
    assert event == {
        "id": "s:7",
        "type": "answer",
        "tenant_id": "acme",
        "session_id": "s",
        "turn_id": None,
        "number": 7,
        "payload": {"reply": "héllo"},
    }


def test_the_signature_is_what_the_page_says() -> None:
    """Receivers in other languages rely on the page."""
    given = webhook_posts.signed_headers([SECRET], "s:7", BODY, 1_800_000_000.5)
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, b"s:7.1800000000." + BODY, hashlib.sha256)).decode()
    assert given == {
        "webhook-id": "s:7",
        "webhook-timestamp": "1800000000",
        "webhook-signature": f"v1,{expected}",
    }


def test_either_secret_is_enough_while_one_is_replaced() -> None:
    both = headers(SECRET, OLD)
    assert verify_webhook(SECRET, both, BODY)
    assert verify_webhook(OLD, both, BODY)
    assert verify_webhook([WRONG, OLD], headers(OLD), BODY)


def test_headers_may_be_written_in_any_case() -> None:
    upper = {name.upper(): value for name, value in headers().items()}
    assert verify_webhook(SECRET, upper, BODY)


@pytest.mark.parametrize(
    "made",
    [lambda: headers(WRONG), lambda: headers(age_s=301), lambda: headers(age_s=-3600)],
    ids=["another's", "too old", "of the future"],
)
def test_a_wrong_secret_or_time_is_refused(made: Callable[[], dict[str, str]]) -> None:
    """The test signs its message now, because one from test collection may be too old."""
    with pytest.raises(Unauthenticated):
        verify_webhook(SECRET, made(), BODY)


@for_each(
    ("changed", "body"),
    [
        ({}, BODY + b" "),
        ({}, b"\xff"),
        ({"webhook-id": "s:8"}, BODY),
        ({"webhook-id": ""}, BODY),
        ({"webhook-timestamp": ""}, BODY),
        ({"webhook-timestamp": "1"}, BODY),
        ({"webhook-timestamp": "-1"}, BODY),
        ({"webhook-timestamp": "9" * 5000}, BODY),
        ({"webhook-timestamp": "soon"}, BODY),
        ({"webhook-signature": ""}, BODY),
        ({"webhook-signature": "v1"}, BODY),
        ({"webhook-signature": "v1,"}, BODY),
        ({"webhook-signature": "v1,é"}, BODY),
        ({"webhook-signature": "v1,0"}, BODY),
    ],
)
def test_anything_else_is_refused(changed: dict[str, str], body: bytes) -> None:
    with pytest.raises(Unauthenticated):
        verify_webhook(SECRET, {**headers(), **changed}, body)


def test_another_version_of_the_signature_is_refused() -> None:
    given = headers()
    given["webhook-signature"] = given["webhook-signature"].replace("v1,", "v0,")
    with pytest.raises(Unauthenticated):
        verify_webhook(SECRET, given, BODY)


def test_a_request_without_the_headers_is_refused() -> None:
    with pytest.raises(Unauthenticated):
        verify_webhook(SECRET, {}, BODY)


@pytest.mark.parametrize("body", [b"no json", b"[]"])
def test_a_genuine_body_that_is_no_event_is_named_as_such(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        verify_webhook(SECRET, headers(body=body), body)


def test_attempts_get_rarer_and_never_rarer_than_an_hour() -> None:
    delays = [webhook_posts.retry_after(attempts) for attempts in (1, 2, 5, 10, 13, 1000)]
    assert 0.75 <= delays[0] <= 1.25
    assert 12 <= delays[2] <= 20
    assert all(2700 <= delay <= 4500 for delay in delays[4:])
    assert len({webhook_posts.retry_after(8) for _ in range(20)}) > 1
