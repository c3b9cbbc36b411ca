"""A domain's flows over HTTP, from which the inspector draws a flow's progress."""

from __future__ import annotations

from tests.integration.gateway import open_house


async def test_flows_are_told_as_their_domain_declares_them(database_url: str, redis_url: str) -> None:
    async with open_house(database_url, redis_url) as house:
        listed = (await house.http.get("/v1/domains/travel/flows")).json()
        missing = await house.http.get("/v1/domains/nowhere/flows")

    booking = next(flow for flow in listed if flow["dact"] == "book_flight")
    assert [slot["name"] for slot in booking["slots"][:3]] == ["origin", "destination", "date"]
    assert {slot["priority"] for slot in booking["slots"][:3]} == {"required"}
    assert (booking["confirm"], booking["tools"]) == (True, ["flight_offer", "flight_book"])
    assert missing.status_code == 404
