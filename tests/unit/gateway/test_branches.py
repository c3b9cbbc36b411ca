"""Forks over HTTP, over the in-memory stores (ST-4)."""

from __future__ import annotations

from tests.unit.gateway.test_calls import open_house, problem


async def test_a_session_can_be_read_as_it_was_and_branched_off_and_compared() -> None:
    """ST-4: a comparison begins where two sessions diverge."""
    async with open_house() as house:
        session = await house.session()
        for reply in ("one", "two"):
            await house.submit(session)
            await house.answer(session, reply)

        past = (await house.http.get(f"/v1/sessions/{session}", params={"at": 1})).json()
        made = await house.http.post(f"/v1/sessions/{session}/branch", json={"epoch": 1, "session_id": "b"})
        again = await house.http.post(f"/v1/sessions/{session}/branch", json={"epoch": 1, "session_id": "b"})
        other = (await house.http.post(f"/v1/sessions/{session}/branch", json={})).json()
        await house.submit("b", "Good evening")
        await house.answer("b", "three")
        found = (await house.http.get("/v1/sessions/b/compare", params={"with": session})).json()
        deeper = await house.http.get("/v1/sessions/b/compare", params={"with": other["session_id"]})
        apart = await house.http.get("/v1/sessions/b/compare", params={"with": await house.session()})

        assert (past["epoch"], past["state"], "parent" in past) == (1, {"turns": 1}, False)
        assert [line["content"] for line in past["history"]] == ["Hello", "one"]
        assert made.status_code == again.status_code == 201
        assert made.json() == again.json()
        assert {
            name: made.json()[name] for name in ("session_id", "parent", "parent_epoch", "epoch", "root")
        } == {"session_id": "b", "parent": session, "parent_epoch": 1, "epoch": 2, "root": session}
        assert (other["parent_epoch"], other["epoch"]) == (2, 3)
        assert found["common"] == deeper.json()["common"] == {"session_id": session, "epoch": 1}
        (pair,) = found["turns"]
        assert (pair["left"]["said"], pair["right"]["said"]) == ("Good evening", "Hello")
        assert (pair["left"]["reply"], pair["right"]["reply"]) == ("three", "two")
        assert pair["differs"] == ["said", "reply"]
        assert deeper.json()["turns"] == found["turns"]
        assert apart.json()["common"] is None
        assert [one["differs"] for one in apart.json()["turns"]] == [
            ["said", "reply", "status", "flows", "completed", "tools"]
        ] * 2
        problem(await house.http.get(f"/v1/sessions/{session}", params={"at": 9}), 404, "not_found")
        problem(await house.http.get("/v1/sessions/b/compare", params={"with": "nobody"}), 404, "not_found")
        problem(await house.http.get("/v1/sessions/b/compare"), 422, "invalid_input")
        taken = await house.http.post(f"/v1/sessions/{session}/branch", json={"epoch": 2, "session_id": "b"})
        problem(taken, 409, "refused")
