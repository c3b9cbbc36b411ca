"""Samples of hostile and benign code, with the registry and tables that they use."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from _pytest.mark import ParameterSet

DEFAULTS = yaml.load(
    resources.files("orchestrator.domain").joinpath("defaults.yaml").read_text("utf-8"), yaml.CSafeLoader
)
ALLOWED_IMPORTS = tuple(DEFAULTS["guardrails"]["allowed_imports"])

FOLDER = Path(__file__).with_name("hostile")

ENTITIES = {"sales": ["id", "day", "region", "amount", "customer id"], "customers": ["id", "name", "city"]}


@dataclass(frozen=True)
class Sample:
    name: str
    code: str
    guard: str | None = None
    alone: str | None = "returned"
    arguments: dict[str, Any] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    result: Any = None
    rows: int = 0
    same: bool = True
    """True if the database accepts the code unchanged, so that results can be compared."""

    def __str__(self) -> str:
        return self.name


def read_hostile(language: str) -> list[Sample]:
    return [
        _read(entry)
        for entry in yaml.load((FOLDER / f"{language}.yaml").read_text("utf-8"), yaml.CSafeLoader)
    ]


def in_short(samples: Iterable[Sample]) -> list[ParameterSet]:
    """Select samples for a test that starts a process per sample: one of each kind. The others are `slow`.

    Samples that pass the guardrails all stay, because only the process stops them. Of those with endless computations,
    which take a second each, only two stay.
    """
    seen, chosen = Counter[tuple[str | None, str | None]](), list[ParameterSet]()
    for sample in samples:
        kind = sample.guard, sample.alone
        seen[kind] += 1
        most = 1 if sample.guard is not None else 2 if sample.alone == "timeout" else sys.maxsize
        marks = [pytest.mark.slow] if seen[kind] > most else []
        chosen.append(pytest.param(sample, id=sample.name, marks=marks))
    return chosen


def read_benign(language: str) -> list[Sample]:
    return [
        _read(entry)
        for entry in yaml.load((FOLDER / "benign.yaml").read_text("utf-8"), yaml.CSafeLoader)[language]
    ]


def _read(entry: dict[str, Any]) -> Sample:
    repeat = entry.pop("repeat", None)
    if repeat:
        start, piece, times, middle, end = repeat
        entry["code"] = f"{start}{piece * times}{middle}{end * times}"
    return Sample(**entry)


def make_database(path: Path) -> Path:
    """Create the registered tables and an unregistered one."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            'create table sales (id int, day date, region text, amount double, "customer id" int);'
            "insert into sales values (1, '2024-01-05', 'north', 10, 1), (2, '2024-01-20', 'south', 20, 2),"
            " (3, '2024-02-03', 'north', 30, 1), (4, '2024-02-04', 'south', 15, 2);"
            "create table customers (id int, name text, city text);"
            "insert into customers values (1, 'Ada', 'Bonn'), (2, 'Ben', 'Rome');"
            "create table hidden (a int); insert into hidden values (42);"
        )
    return path
