"""Loads the named statements of the hot path from their files. Nothing is generated at run time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, LiteralString, cast

from psycopg.adapt import PyFormat
from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_ARGUMENT = re.compile(r"%\((\w+)\)s")
_INCLUDE = re.compile(r"^ *-- include: parts/(\w+)\.sql\n", re.MULTILINE)
_PART = re.compile(r"^-- only with: (\w+)\n(.*?)^-- end\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with numbered arguments, their names in that order, and in which formats they may be sent.

    The driver would translate named arguments at each call when a statement is as long as ours.
    """

    text: LiteralString
    names: tuple[str, ...]
    formats: tuple[PyFormat, ...]

    def ordered(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The arguments in the statement's order. Raises KeyError when one is missing."""
        return [arguments[name] for name in self.names]


def source(name: str) -> str:
    """Read `sql/<name>.sql`, with the parts in `sql/parts/` that it includes in their places.

    A line ``-- include: parts/<part>.sql`` stands for that file: what several statements need is written once.
    """
    folder = resources.files("orchestrator.adapters.postgres") / "sql"
    written = folder.joinpath(f"{name}.sql").read_text("utf-8")
    return _INCLUDE.sub(lambda match: source(f"parts/{match[1]}"), written)


@cache
def statement(name: str, without: frozenset[str] = frozenset()) -> Statement:
    """The statement of `sql/<name>.sql`, where arguments are written ``%(name)s``.

    `without`: arguments that are null here; what stands between ``-- only with: <argument>`` and ``-- end`` is
    left out for them, and costs nothing.
    """
    return parse(leave_out(source(name), without))


def leave_out(written: str, without: frozenset[str]) -> str:
    """Take out of a source text what is there only with these arguments."""
    return _PART.sub(lambda part: "" if part[1] in without else part[2], written)


def with_colons(written: str) -> str:
    """Write a source text with its arguments as SQLAlchemy's `text` names them."""
    return _ARGUMENT.sub(r":\1", written)


def as_text(name: str) -> TextClause:
    """The statement of `sql/<name>.sql` for SQLAlchemy."""
    return text(with_colons(source(name)))


async def run_named(connection: AsyncConnection, name: str, **arguments: Any) -> Any:
    """Run the statement of `sql/<name>.sql` in a transaction of SQLAlchemy's."""
    return await connection.exec_driver_sql(source(name), arguments)


@cache
def parse(written: str) -> Statement:
    """A statement from its source text."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    text = _ARGUMENT.sub(number, _COMMENT.sub("", written))
    return Statement(cast("LiteralString", text), tuple(names), (PyFormat.AUTO,) * len(names))
