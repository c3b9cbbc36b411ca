"""Guardrail verdicts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rapidfuzz import fuzz, process, utils

from orchestrator.saying import Saying, say

LONGEST_CODE = 20_000
"""Maximum length of code to check, in characters."""

# Tables and columns that code can use. A table in a schema is ``schema.table``.
Entities: TypeAlias = Mapping[str, Collection[str]]


class Category(StrEnum):
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    """Code that is nested so deeply that parsing it is a risk."""
    HIDDEN_CHARACTERS = "hidden_characters"
    """Characters that make code look different from its behavior."""
    SYNTAX = "syntax"
    NOT_ONE_FUNCTION = "not_one_function"
    FORBIDDEN_SYNTAX = "forbidden_syntax"
    FORBIDDEN_IMPORT = "forbidden_import"
    FORBIDDEN_NAME = "forbidden_name"
    NOT_ONE_STATEMENT = "not_one_statement"
    NOT_READ_ONLY = "not_read_only"
    """A statement that changes data, which the tool does not permit."""
    FORBIDDEN_STATEMENT = "forbidden_statement"
    """A statement that is never permitted: attach, copy, pragma, install, set, call …"""
    FORBIDDEN_SOURCE = "forbidden_source"
    """A file, a URL or a system table in place of a table."""
    FORBIDDEN_FUNCTION = "forbidden_function"
    UNKNOWN_ENTITY = "unknown_entity"


@dataclass(frozen=True, slots=True)
class RejectedCode:
    """A rejection of model-written code. `message`: one or two sentences that help a model fix the code.

    `suggestion`: the most similar known name, or None if no known name is similar enough. `unknown`: the name
    in the code that `suggestion` would replace.
    """

    category: Category
    message: str
    suggestion: str | None = None
    unknown: str | None = None

    def tell(self) -> Saying:
        """Return a message for the user, with the technical message as its detail."""
        return say("code_rejected", why=self.category.value).with_detail(
            f"{self.category.value}: {self.message}"
        )


@dataclass(frozen=True, slots=True)
class ApprovedCode:
    """Approved code. `code`: the regenerated text, which is the only text that may run.

    `imports`: the modules that Python code imports. `columns`: the named result columns of an SQL query.
    """

    code: str
    imports: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()


NEAR_ENOUGH = 70.0


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    found = process.extractOne(
        name, sorted(known), scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=NEAR_ENOUGH
    )
    return found[0] if found else None
