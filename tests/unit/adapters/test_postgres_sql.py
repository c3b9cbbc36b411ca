"""Named statements: argument numbers, headers, the fence, and optional parts."""

from __future__ import annotations

from importlib import resources

import pytest

from orchestrator.adapters.postgres import statements as sql
from tests.cases import for_each

NAMES = sorted(
    entry.name.removesuffix(".sql")
    for entry in resources.files("orchestrator.adapters.postgres").joinpath("sql").iterdir()
    if entry.name.endswith(".sql")
)


def test_an_argument_has_one_number_however_often_it_is_used() -> None:
    parsed = sql.parse("-- of a: %(x)s\nSELECT %(b)s, %(a)s::text, %(b)s -- not: a whole line\n")
    assert parsed.text == "SELECT $1, $2::text, $1 -- not: a whole line\n"
    assert parsed.names == ("b", "a")
    assert parsed.ordered({"a": 1, "b": 2, "more": 3}) == [2, 1]
    with pytest.raises(KeyError):
        parsed.ordered({"a": 1})


@for_each("name", NAMES)
def test_every_statement_says_what_it_takes(name: str) -> None:
    header = "".join(line for line in sql.source(name).splitlines(keepends=True) if line.startswith("--"))
    assert "Arguments:" in header
    for argument in sql.statement(name).names:
        assert argument in header, f"{argument} is not in the header of {name}.sql"


def test_the_fence_is_one_line() -> None:
    """RT-3"""
    lines = [line.strip() for line in sql.source("commit_turn").splitlines()]
    assert lines.count("AND lease_token = %(token)s AND lanes.epoch = %(epoch)s") == 1


def test_what_a_turn_does_not_have_is_not_in_its_statement() -> None:
    """RT-20"""
    parts = {"archived", "frames", "plans", "plan_revisions", "outbox"}
    whole = sql.statement("commit_turn")
    short = sql.statement("commit_turn", frozenset(parts))
    gone = {"flows_archive", "frames", "plans", "plan_revisions", "outbox"}
    for table in gone | {"state_history", "utterances", "events"}:
        assert f"INSERT INTO {table} " in whole.text
        assert (f"INSERT INTO {table} " in short.text) is (table not in gone)
    assert set(whole.names) - set(short.names) == parts


def test_a_turn_that_nothing_waits_behind_looks_for_no_other() -> None:
    """RT-20: the statement then updates the inbox only once."""
    followed, last = (sql.statement("commit_turn", frozenset({without})) for without in ("last", "following"))
    assert (followed.text.count("UPDATE turns"), last.text.count("UPDATE turns")) == (2, 1)
    assert set(followed.names) - set(last.names) == {"max_attempts", "deadline_s", "crashes_below"}
