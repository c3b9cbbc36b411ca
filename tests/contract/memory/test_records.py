"""Contract of domain services' records."""

from __future__ import annotations

import pytest

from orchestrator.domain.services import Records
from orchestrator.types import JsonObject, TenantId
from tests.contract.conftest import Ports


@pytest.fixture
def records(ports: Ports, tenant: TenantId) -> Records:
    return ports.make_records(tenant, "travel")


async def test_the_first_document_of_a_key_stays(records: Records) -> None:
    """RT-9: a repeated attempt finds the document of the first one."""
    assert await records.get("bookings", "B1") is None
    assert await records.create("bookings", "B1", {"seat": "1A", "paid": False}) == {
        "seat": "1A",
        "paid": False,
    }
    assert await records.create("bookings", "B1", {"seat": "9F"}) == {"seat": "1A", "paid": False}
    assert await records.get("bookings", "B1") == {"seat": "1A", "paid": False}
    assert await records.get("other", "B1") is None


async def test_changes_are_merged_where_the_condition_holds(records: Records) -> None:
    await records.create("bookings", "B1", {"status": "held", "seat": None})
    assert await records.update("bookings", "B1", {"status": "paid"}, where={"status": "void"}) is None
    assert await records.update("bookings", "none", {"status": "paid"}) is None
    changed = await records.update(
        "bookings", "B1", {"status": "paid", "price": 12.5}, where={"status": "held", "seat": None}
    )
    assert changed == {"status": "paid", "seat": None, "price": 12.5}
    assert await records.get("bookings", "B1") == changed
    assert await records.update("bookings", "B1", {"seat": {"row": 1}}) == {**changed, "seat": {"row": 1}}


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        (None, ["A", "a", "b", "c"]),
        ({}, ["A", "a", "b", "c"]),
        ({"city": "Oslo"}, ["A", "b"]),
        ({"city": "Oslo", "stars": 3}, ["A"]),
        ({"tags": ["x"]}, ["b"]),
        ({"stars": True}, ["c"]),
        ({"city": None}, ["c"]),
        ({"missing": None}, []),
        ({"place": {"lat": 1}}, ["a"]),
    ],
)
async def test_fields_are_compared_for_equality(
    records: Records, where: JsonObject | None, keys: list[str]
) -> None:
    await records.create("hotels", "b", {"key": "b", "city": "Oslo", "tags": ["x"]})
    await records.create("hotels", "a", {"key": "a", "city": "Rome", "stars": 1, "place": {"lat": 1}})
    await records.create("hotels", "c", {"key": "c", "city": None, "stars": True, "tags": ["x", "y"]})
    await records.create(
        "hotels", "A", {"key": "A", "city": "Oslo", "stars": 3, "place": {"lat": 1, "lon": 2}}
    )
    assert [found["key"] for found in await records.find("hotels", where)] == keys
    assert [found["key"] for found in await records.find("hotels", where, limit=1)] == keys[:1]


async def test_what_was_given_is_not_shared(records: Records) -> None:
    document = {"seats": ["1A"]}
    await records.create("bookings", "B1", document)
    document["seats"].append("1B")
    found = await records.get("bookings", "B1")
    assert found == {"seats": ["1A"]}
    found["seats"].append("1C")
    assert await records.get("bookings", "B1") == {"seats": ["1A"]}


async def test_tenants_and_domains_do_not_meet(ports: Ports, tenant: TenantId, records: Records) -> None:
    """RT-22"""
    await records.create("bookings", "B1", {"seat": "1A"})
    assert await ports.make_records(TenantId("other"), "travel").get("bookings", "B1") is None
    assert await ports.make_records(tenant, "analytics").find("bookings") == []
