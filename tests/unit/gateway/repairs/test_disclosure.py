"""RT-35: operators' notes are hidden from users."""

from __future__ import annotations

from tests.unit.gateway.repairs.broken_sessions import TO_MADRID, WHY
from tests.unit.gateway.repairs.test_broken_sessions import BY, open_site
from tests.unit.gateway.repairs.test_repairs import SESSION


async def test_users_are_not_told_what_operators_write_for_each_other() -> None:
    async with open_site() as (site, headers):
        await site.say(SESSION, TO_MADRID)
        made = await site.post(SESSION, [{"kind": "take_over"}], 1)
        of_session = f"/v1/sessions/{SESSION}"
        compared = f"{of_session}/compare?with={SESSION}"
        turns = ("/v1/turns", f"/v1/turns/{made.json()['turn_id']}", f"{of_session}/turns")
        told = ("history", "events?follow=false", "?at=2")

        for path in (*(f"{of_session}/{name}".replace("/?", "?") for name in told), *turns, compared):
            for who in (BY, "user"):
                answer = await site.http.get(path, headers=headers[who])
                assert answer.status_code == 200, answer.text
                assert (WHY in answer.text) is (who == BY and path != compared), (who, path, answer.text)
                assert "A person has joined" in answer.text
