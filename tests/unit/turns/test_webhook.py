"""Signatures of webhooks: what is genuine, and everything that is not (RT-16)."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from orchestrator.client import verify_webhook
from orchestrator.errors import InvalidInput, Unauthenticated
from orchestrator.turns import webhook
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId

SECRET, OLD = "whsec_new", "whsec_old"
NOW = 1_800_000_000.0
EVENT = Event(SessionId("s"), "answer", None, {"reply": "héllo"}, number=7)
BODY = webhook.delivery_body(TenantId("acme"), EVENT)


def headers(*secrets: str, at: float = NOW, body: bytes = BODY) -> dict[str, str]:
    return {webhook.SIGNATURE_HEADER: webhook.sign(secrets or (SECRET,), body, at)}


def test_a_genuine_delivery_gives_its_event() -> None:
    event = verify_webhook(SECRET, headers(), BODY, now=NOW + 5)
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
    """So that receivers in other languages can check it."""
    expected = hmac.new(SECRET.encode(), b"1800000000." + BODY, hashlib.sha256).hexdigest()
    assert headers() == {"Parley-Signature": f"t=1800000000,v1={expected}"}


def test_either_secret_is_enough_while_one_is_replaced() -> None:
    both = headers(SECRET, OLD)
    assert verify_webhook(SECRET, both, BODY, now=NOW)
    assert verify_webhook(OLD, both, BODY, now=NOW)
    assert verify_webhook(["something else", OLD], headers(OLD), BODY, now=NOW)


def test_headers_may_be_written_in_any_case() -> None:
    lower = {name.lower(): value for name, value in headers().items()}
    assert verify_webhook(SECRET, lower, BODY, now=NOW)


@pytest.mark.parametrize(
    ("given", "body", "now"),
    [
        ({}, BODY, NOW),
        (headers("whsec_wrong"), BODY, NOW),
        (headers(), BODY + b" ", NOW),
        (headers(), BODY, NOW + 301),
        (headers(), BODY, NOW - 301),
        ({"Parley-Signature": ""}, BODY, NOW),
        ({"Parley-Signature": "t=1800000000"}, BODY, NOW),
        ({"Parley-Signature": "v1=" + "0" * 64}, BODY, NOW),
        ({"Parley-Signature": "t=1800000000,v1=é"}, BODY, NOW),
        ({"Parley-Signature": "t=-1,v1=0"}, BODY, NOW),
        ({"Parley-Signature": "t=" + "9" * 5000 + ",v1=0"}, BODY, NOW),
        ({"Parley-Signature": headers()["Parley-Signature"].replace("t=", "t=1,t=")}, BODY, NOW),
        ({"Parley-Signature": headers()["Parley-Signature"].replace("v1=", "v0=")}, BODY, NOW),
        ({"Parley-Signature": headers()["Parley-Signature"].replace("t=18", "t=19")}, BODY, NOW),
    ],
)
def test_anything_else_is_refused(given: dict[str, str], body: bytes, now: float) -> None:
    with pytest.raises(Unauthenticated):
        verify_webhook(SECRET, given, body, now=now)


@pytest.mark.parametrize("body", [b"no json", b"[]"])
def test_a_genuine_body_that_is_no_event_is_named_as_such(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        verify_webhook(SECRET, headers(body=body), body, now=NOW)


def test_attempts_get_rarer_and_never_rarer_than_an_hour() -> None:
    delays = [webhook.retry_after(attempts) for attempts in (1, 2, 5, 10, 13, 1000)]
    assert 0.75 <= delays[0] <= 1.25
    assert 12 <= delays[2] <= 20
    assert all(2700 <= delay <= 4500 for delay in delays[4:])
    assert len({webhook.retry_after(8) for _ in range(20)}) > 1
