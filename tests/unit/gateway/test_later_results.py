"""Results of tools that answer later, at their signed URL (RT-32)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx

from orchestrator.turns.scheduled import RESULT, expect_result
from orchestrator.types import SessionId, TenantId
from tests.unit.gateway.guarded import GuardedHouse

TENANT = TenantId("acme")
PAID = {"status": "done", "data": {"receipt": "R-17"}}


async def _expect(house: GuardedHouse, session: str) -> str:
    """Return the path and query that a tool receives with its call."""
    event = expect_result(
        SessionId(session),
        TENANT,
        call="turn:pay:1",
        tool_id="card_charge",
        fingerprint=None,
        due=datetime.now(UTC) + timedelta(days=9000),
        set_by="step",
    )
    call = await house.app.state.dependencies.turns.scheduled.schedule(event)
    return f"/v1/calls/{call.event_id}?tenant={TENANT}&signature={call.signature}"


async def test_the_signed_url_is_all_that_a_result_needs(house: GuardedHouse) -> None:
    key = await house.key()
    session = await house.session(key)
    url = await _expect(house, session)
    accepted = await house.ask(None, "POST", url, json=PAID)
    assert accepted.status_code == 202, accepted.text
    assert await _turn_of(house, key, accepted) == [RESULT]
    assert (await house.ask(None, "POST", url, json=PAID)).json() == accepted.json()
    other = await house.ask(None, "POST", url, json={"status": "failed", "message": "no"})
    assert (other.status_code, other.json()["code"]) == (409, "refused")


async def _turn_of(house: GuardedHouse, key: str, answer: httpx.Response) -> list[str]:
    body = answer.json()
    turns = await house.ask(key, "GET", f"/v1/sessions/{body['session_id']}/turns")
    return [turn["action"]["name"] for turn in turns.json() if turn["turn_id"] == body["turn_id"]]


async def test_a_wrong_signature_finds_no_call_and_cannot_be_guessed(house: GuardedHouse) -> None:
    url = await _expect(house, await house.session(await house.key()))
    guesses = {f"{url[:-3]}{number:03}" for number in range(200)} - {url}
    statuses = [(await house.ask(None, "POST", guess, json=PAID)).status_code for guess in guesses]
    assert set(statuses) == {404, 429}
    assert (await house.ask(None, "POST", url.partition("&")[0], json=PAID)).status_code == 422
    assert (await house.ask(None, "POST", url, json={"status": "maybe"})).status_code == 422
