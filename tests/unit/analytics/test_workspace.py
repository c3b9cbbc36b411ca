"""Steps: added once, undone once, rebuilt anywhere, and nobody else's."""

from __future__ import annotations

import asyncio

import pytest

from domains.analytics.store import workspace as workspaces
from domains.analytics.store.engine import Engine, engine
from domains.analytics.store.workspace import Workspace
from orchestrator.errors import FailureCategory, ToolFailure
from tests.unit.analytics.factories import Office, a_call

CHANGES = [
    ("edits", "filter", {"table": "cars", "condition": "where origin is Japan"}),
    ("edits", "delete", {"table": "cars", "condition": "where mpg is missing"}),
    ("edits", "deduplicate", {"table": "iris"}),
    ("edits", "sort", {"table": "cars", "order": "weight", "direction": "descending"}),
    ("edits", "sample", {"table": "airports", "size": 20}),
    ("edits", "clean", {"table": "cars", "case": "title"}),
    ("edits", "fill", {"table": "cars", "column": "mpg", "strategy": "mean"}),
    ("edits", "cast", {"table": "cars", "column": "cylinders", "type": "text"}),
    ("edits", "derive", {"table": "cars", "formula": "ratio = horsepower / weight"}),
    ("edits", "split_column", {"table": "cars", "column": "name", "columns": ["make", "series"]}),
    ("edits", "rename", {"table": "cars", "column": "horsepower", "new_name": "power"}),
    ("edits", "drop", {"table": "cars", "column": "weight"}),
    ("edits", "insert", {"table": "wheat", "values": {"year": "1830"}}),
    ("reshaping", "merge", {"table": "seattle", "other_table": "san_francisco"}),
    ("reshaping", "union", {"table": "seattle", "other_table": "san_francisco"}),
    ("reshaping", "split", {"table": "electricity", "by": "source"}),
    (
        "reshaping",
        "pivot",
        {"table": "electricity", "by": "year", "across": "source", "column": "generation"},
    ),
]


BY_NAME = {change[1]: change for change in CHANGES}


async def carry_out(office: Office, change: tuple, key: str | None = None) -> dict:
    service, method, inputs = change
    return await getattr(getattr(office, service), method)(call=a_call(key), **inputs)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[1])
async def test_a_change_tried_twice_is_made_once(change: tuple) -> None:
    office = Office()
    first = await carry_out(office, change, "the key")
    again = await carry_out(office, change, "the key")
    assert again == first
    assert (await office.steps.history(call=a_call()))["row_count"] == 1
    outcome = await office.steps.outcome(idempotency_key="the key", call=a_call())
    assert (outcome["status"], outcome["data"]["step"]) == ("done", 1)


async def test_a_change_that_was_never_made_is_not_done() -> None:
    assert await Office().steps.outcome(idempotency_key="x", call=a_call()) == {"status": "not_done"}


async def test_another_process_rebuilds_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records alone are enough: a fresh engine gives the same rows."""
    office = Office()
    for change in CHANGES:
        await carry_out(office, change)
    workspace = await Workspace.open(office.records, a_call())
    names = [name for name, sheet in workspace.sheets.items() if not sheet.node.startswith("base:")]
    assert len(names) >= 8
    before = {
        name: (await workspace.read("SELECT * FROM in0", {}, workspace.sheet(name))).rows for name in names
    }
    fresh = Engine()
    monkeypatch.setattr(workspaces, "engine", lambda: fresh)
    monkeypatch.setattr(workspaces, "_recipes", {})
    again = await Workspace.open(office.records, a_call())
    for name in names:
        assert (await again.read("SELECT * FROM in0", {}, again.sheet(name))).rows == before[name]


async def test_dropped_tables_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    office = Office()
    monkeypatch.setattr("domains.analytics.store.engine.KEPT_CELLS", 1)
    await carry_out(office, BY_NAME["filter"])
    await carry_out(office, BY_NAME["deduplicate"])
    found = await office.tables.aggregate(table="cars", call=a_call())
    assert found["rows"] == [{"count": 79}]


async def test_undo_takes_back_one_step_at_a_time() -> None:
    office = Office()
    await carry_out(office, BY_NAME["filter"])
    await carry_out(office, BY_NAME["rename"])
    await office.steps.undo(call=a_call("undo"))
    await office.steps.undo(call=a_call("undo"))
    sheet = (await Workspace.open(office.records, a_call())).sheet("cars")
    assert (sheet.rows, "horsepower" in sheet.names) == (79, True)
    await office.steps.undo(call=a_call())
    assert (await Workspace.open(office.records, a_call())).sheet("cars").rows == 406
    with pytest.raises(ToolFailure, match="nothing to undo"):
        await office.steps.undo(call=a_call())


async def test_a_compensation_undoes_its_own_step_only() -> None:
    office = Office()
    first = await carry_out(office, BY_NAME["filter"])
    await carry_out(office, BY_NAME["rename"])
    with pytest.raises(ToolFailure, match="Other changes came after"):
        await office.steps.undo(step=first["step"], call=a_call())


async def test_changes_at_the_same_time_all_count() -> None:
    """Two sessions of one user, no lane between them."""
    office = Office()
    names = [f"power_{number}" for number in range(6)]
    await asyncio.gather(
        *(
            office.edits.sample(table="cars", size=5, new_name=name, call=a_call(user="anna"))
            for name in names
        )
    )
    workspace = await Workspace.open(office.records, a_call(user="anna"))
    assert set(names) <= workspace.sheets.keys()
    assert [step["number"] for step in workspace.steps] == [1, 2, 3, 4, 5, 6]


async def test_workspaces_are_apart() -> None:
    office = Office()
    await office.edits.drop(table="cars", column="weight", call=a_call(user="anna"))
    for call in (a_call(user="bert"), a_call(session="session_2"), a_call()):
        assert "weight" in (await Workspace.open(office.records, call)).sheet("cars").names
    same = await Workspace.open(office.records, a_call(user="anna", session="session_9"))
    assert "weight" not in same.sheet("cars").names


async def test_names_that_people_made_are_told() -> None:
    """AG-3: what later turns may speak of."""
    office = Office()
    await carry_out(office, BY_NAME["rename"])
    found = await carry_out(office, BY_NAME["sample"])
    own = found["names"]["table"]
    assert own.keys() == {"airports_sample", "cars"}
    assert (own["airports_sample"]["rows"], "power" in own["cars"]["columns"]) == (20, True)
    assert found["names"]["column"] == {"power": {}}


async def test_given_tables_cannot_be_overwritten() -> None:
    with pytest.raises(ToolFailure, match="one of the given tables"):
        await Office().edits.sample(table="cars", new_name="airports", call=a_call())


async def test_nothing_missing_is_left_after_filling() -> None:
    office = Office()
    await carry_out(office, BY_NAME["fill"])
    assert (await office.tables.find_missing(table="cars", column="mpg", call=a_call()))["missing"] == 0
    shown = (await office.tables.preview(table="cars", call=a_call()))["rows"]
    original = engine().run("SELECT name FROM in0", {}, ["base:cars"]).rows
    assert [row["name"] for row in shown] == [row[0] for row in original], "the order stays"


async def test_a_merge_without_a_plain_key_asks_for_one() -> None:
    with pytest.raises(ToolFailure, match="no column in common") as failure:
        await Office().reshaping.merge(table="iris", other_table="stocks", call=a_call())
    assert failure.value.category is FailureCategory.VALIDATION_ERROR


async def test_a_split_makes_disjoint_parts() -> None:
    office = Office()
    found = await carry_out(office, BY_NAME["split"])
    assert sum(part["rows"] for part in found["parts"]) == 51
    with pytest.raises(ToolFailure, match="too many tables"):
        await office.reshaping.split(table="airports", by="city", call=a_call())


async def test_a_pivot_agrees_with_the_table() -> None:
    office = Office()
    await carry_out(office, BY_NAME["pivot"])
    pivot = (await office.tables.preview(table="electricity_pivot", call=a_call()))["rows"]
    rows = (await office.tables.preview(table="electricity", call=a_call()))["rows"]
    for row in rows:
        name = row["source"].lower().replace(" ", "_")
        assert next(one for one in pivot if one["year"] == row["year"])[name] == row["generation"]
