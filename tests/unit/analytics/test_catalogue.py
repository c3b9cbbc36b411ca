"""The catalogue matches the data."""

from __future__ import annotations

from domains.analytics.catalogue import TABLES, VALUES, columns, tables, tables_with
from domains.analytics.engine import engine, quote
from tests.cases import for_each


@for_each("name", TABLES)
def test_every_table_is_as_declared(name: str) -> None:
    table = TABLES[name]
    found = engine().run(f"SELECT * FROM {quote(name)}")
    assert len(found.rows) == table.rows
    assert [(c.name, c.type) for c in found.columns] == [(c.name, c.type) for c in table.columns]


@for_each("place", VALUES)
def test_the_values_of_a_column_are_as_declared(place: str) -> None:
    table, _, column = place.partition(".")
    found = engine().run(f"SELECT DISTINCT {quote(column)} FROM {quote(table)}").rows
    assert set(VALUES[place]) == {row[0] for row in found}


def test_providers_name_everything_once() -> None:
    for values in (tables(), columns()):
        names = [value.canonical for value in values]
        assert len(names) == len(set(names)) > 4


def test_tables_are_found_by_their_columns() -> None:
    assert tables_with(["mpg", "origin"]) == ["cars"]
    assert tables_with(["unheard_of"]) == []
