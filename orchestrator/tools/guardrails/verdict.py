"""Holds the verdicts of the guardrails on code, a closed set of records, and what SQL is judged by."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rapidfuzz import fuzz, process, utils

from orchestrator.domain.guarding import Statement

# What code may name: the tables, each with its columns. A table of a schema is ``schema.table``.
Entities: TypeAlias = Mapping[str, Collection[str]]


class Category(StrEnum):
    """The reasons for which code is rejected."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    """Nested so deeply that reading it is a risk in itself."""
    HIDDEN_CHARACTERS = "hidden_characters"
    """Characters that make code look different from what it is."""
    SYNTAX = "syntax"
    NOT_ONE_FUNCTION = "not_one_function"
    FORBIDDEN_SYNTAX = "forbidden_syntax"
    FORBIDDEN_IMPORT = "forbidden_import"
    FORBIDDEN_NAME = "forbidden_name"
    FORBIDDEN_ATTRIBUTE = "forbidden_attribute"
    NOT_ONE_STATEMENT = "not_one_statement"
    NOT_READ_ONLY = "not_read_only"
    """A statement that changes data, and the tool does not take it."""
    FORBIDDEN_STATEMENT = "forbidden_statement"
    """A statement that no tool takes: attach, copy, pragma, install, set, call …"""
    FORBIDDEN_SOURCE = "forbidden_source"
    """A file, an address or a system table where a table is expected."""
    FORBIDDEN_FUNCTION = "forbidden_function"
    UNKNOWN_ENTITY = "unknown_entity"


READ_ONLY = frozenset({Statement.SELECT})


@dataclass(frozen=True, slots=True)
class SqlRules:
    """`statements`: what the tool takes. `functions`: allowed besides the usual ones."""

    dialect: str = "duckdb"
    statements: frozenset[Statement] = READ_ONLY
    functions: frozenset[str] = frozenset()
    max_characters: int = 20_000
    max_tokens: int = 4_000
    max_depth: int = 80


@dataclass(frozen=True, slots=True)
class Rejected:
    """`message`: one or two sentences with which a model can repair the code.

    `suggestion`: the known name nearest to an unknown one, if any is near.
    """

    category: Category
    message: str
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovedPython:
    """`code`: without comments and annotations, as it was understood; only this may be run."""

    code: str
    function: str
    parameters: tuple[str, ...]
    imports: frozenset[str]


@dataclass(frozen=True, slots=True)
class ApprovedSql:
    """`code`: written anew from what was understood; only this may be run.

    `tables`: the base tables that it reads or writes, as the registry spells them. `columns`: those of its result
    that it names.
    """

    code: str
    statement: Statement
    tables: frozenset[str]
    columns: tuple[str, ...] = ()


GuardrailVerdict: TypeAlias = ApprovedPython | ApprovedSql | Rejected


NEAR_ENOUGH = 70.0


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the most similar known name; None when none is similar."""
    found = process.extractOne(
        name, sorted(known), scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=NEAR_ENOUGH
    )
    return found[0] if found else None
