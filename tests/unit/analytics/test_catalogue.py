"""The catalogue says of the data what is true of them."""

from __future__ import annotations

import pytest

from domains.analytics.catalogue import TABLES, VALUES, columns, groups, tables, tables_with
from domains.analytics.statements.parts import quote
from domains.analytics.store.engine import engine
from domains.analytics.store.sheet import BASE


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_as_the_catalogue_says(name: str) -> None:
    table = TABLES[name]
    found = engine().run("SELECT * FROM in0", {}, [BASE + name])
    assert len(found.rows) == table.rows
    assert [(c.name, c.type) for c in found.columns] == [(c.name, c.type) for c in table.columns]


def test_the_tables_have_the_shapes_that_the_domain_needs() -> None:
    rows = {name: table.rows for name, table in TABLES.items()}
    assert sum(number >= 2000 for number in rows.values()) >= 1
    gaps = engine().run("SELECT count(*) - count(mpg) FROM in0", {}, ["base:cars"]).rows
    assert gaps == [(8,)]
    doubles = engine().run("SELECT count(*) FROM (SELECT DISTINCT * FROM in0)", {}, ["base:iris"]).rows
    assert doubles == [(149,)]


@pytest.mark.parametrize("place", VALUES)
def test_every_group_occurs_in_its_column(place: str) -> None:
    table, _, column = place.partition(".")
    found = engine().run(f"SELECT DISTINCT {quote(column)} FROM in0", {}, [BASE + table]).rows
    assert set(VALUES[place]) == {row[0] for row in found}


def test_providers_name_everything_once() -> None:
    for values in (tables(), columns(), groups()):
        names = [value.canonical for value in values]
        assert len(names) == len(set(names)) > 4


def test_tables_are_known_by_their_columns_and_groups() -> None:
    assert tables_with(["mpg", "origin"]) == ["cars"]
    assert tables_with(["price", "year"]) == ["stocks"]
    assert tables_with(["Japan"]) == ["cars"]
    assert tables_with(["unheard_of"]) == []
