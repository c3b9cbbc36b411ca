"""A domain's declarations about model-written code: inputs that accept code, and importable modules.

`tools.guardrails` checks the code.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.types import Json, JsonObject, is_list, is_object

GUARDRAIL = "x-guardrail"
STATEMENTS = "x-statements"

_HARMLESS = """
base64 binascii bisect collections datetime decimal hashlib itertools json math random re statistics time unicodedata
    """
HARMLESS_MODULES = frozenset(_HARMLESS.split())
"""Modules that a configuration can permit: those of the Python interpreter for model-written code that only compute."""


class Language(StrEnum):
    PYTHON = "python"
    SQL = "sql"


class Statement(StrEnum):
    """Kinds of SQL statements that a tool can permit. Only SELECT leaves data unchanged."""

    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    CREATE_TABLE = "create_table"
    ALTER_TABLE = "alter_table"
    DROP_TABLE = "drop_table"


READ_ONLY = frozenset({Statement.SELECT})


@dataclass(frozen=True, slots=True)
class GuardedInput:
    """A tool input that accepts code. `statements`: permitted kinds of SQL statements."""

    name: str
    language: Language
    statements: frozenset[Statement] = READ_ONLY


def read_guarded_inputs(schema: JsonObject) -> tuple[GuardedInput, ...]:
    """Return the inputs that a valid schema marks with `x-guardrail`.

    `x-statements` lists the SQL statements that an input permits. Default: SELECT.
    """
    return tuple(
        GuardedInput(
            name,
            Language(body[GUARDRAIL]),
            frozenset(Statement(kind) for kind in body.get(STATEMENTS, READ_ONLY)),
        )
        for name, body in _properties(schema)
        if GUARDRAIL in body
    )


def find_mistakes(schema: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each mistake in a schema's guardrail keywords, as the input's name and a message."""
    for name, body in _properties(schema):
        language, statements = body.get(GUARDRAIL), body.get(STATEMENTS)
        if STATEMENTS in body and language != Language.SQL:
            yield name, f"{STATEMENTS} is allowed only for inputs with {GUARDRAIL}: sql"
        if GUARDRAIL not in body:
            continue
        if language not in set(Language):
            yield name, f"{GUARDRAIL} should be one of {', '.join(Language)} (it is {language!r})"
        elif body.get("type") != "string":
            yield name, "should have the type 'string', because code is text"
        elif STATEMENTS in body and not _are_statements(statements):
            yield name, f"{STATEMENTS} should be a list of {', '.join(Statement)}"


def _are_statements(value: Json) -> bool:
    return is_list(value) and bool(value) and all(kind in set(Statement) for kind in value)


def _properties(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    properties = schema.get("properties")
    if is_object(properties):
        yield from ((name, body) for name, body in properties.items() if is_object(body))
