"""What the guardrails say of a piece of code: a closed set of records, never an exception."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rapidfuzz import fuzz, process, utils

from orchestrator.domain.guarding import Language, Statement

__all__ = [
    "ApprovedPython",
    "ApprovedSql",
    "Category",
    "Entities",
    "Language",
    "Rejected",
    "Statement",
    "Verdict",
]

Entities: TypeAlias = Mapping[str, Collection[str]]
"""What code may name: the tables, each with its columns. A table of a schema is ``schema.table``."""


class Category(StrEnum):
    """Why code is rejected."""

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

    `tables`: the base tables that it reads or writes, as the registry spells them.
    """

    code: str
    statement: Statement
    tables: frozenset[str]


Verdict: TypeAlias = ApprovedPython | ApprovedSql | Rejected


NEAR_ENOUGH = 70.0


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, or None when none is similar."""
    found = process.extractOne(
        name, sorted(known), scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=NEAR_ENOUGH
    )
    return found[0] if found else None
