"""Named SQL statements, loaded from the files in `sql/`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, LiteralString, cast

from psycopg.adapt import PyFormat
from sqlalchemy.ext.asyncio import AsyncConnection

_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_ARGUMENT = re.compile(r"%\((\w+)\)s")
_INCLUDE = re.compile(r"^ *-- include: parts/(\w+)\.sql\n", re.MULTILINE)
_PART = re.compile(r"^-- only with: (\w+)\n(.*?)^-- end\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with numbered arguments, their names in order and their wire formats.

    Without numbers, psycopg would translate the named arguments of long statements at each call.
    """

    text: LiteralString
    names: tuple[str, ...]
    formats: tuple[PyFormat, ...]

    def ordered(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the arguments in the statement's order. Raises KeyError if an argument is missing."""
        return [arguments[name] for name in self.names]


def source(name: str) -> str:
    """Return `sql/<name>.sql` with the parts that it includes.

    Each line ``-- include: parts/<part>.sql`` is replaced by that file.
    """
    folder = resources.files("orchestrator.adapters.postgres") / "sql"
    written = folder.joinpath(f"{name}.sql").read_text("utf-8")
    return _INCLUDE.sub(lambda match: source(f"parts/{match[1]}"), written)


@cache
def statement(name: str, without: frozenset[str] = frozenset()) -> Statement:
    """Return the statement in `sql/<name>.sql`. In the file, arguments are written as ``%(name)s``.

    `without`: arguments that are null in this variant. The lines between ``-- only with: <argument>`` and
    ``-- end`` are removed for these arguments.
    """
    return parse(leave_out(source(name), without))


def leave_out(written: str, without: frozenset[str]) -> str:
    """Return SQL source without the parts that require the arguments in `without`."""
    return _PART.sub(lambda part: "" if part[1] in without else part[2], written)


def with_colons(written: str) -> str:
    """Return SQL source with arguments in the syntax of SQLAlchemy's `text`."""
    return _ARGUMENT.sub(r":\1", written)


async def run_named(connection: AsyncConnection, name: str, **arguments: Any) -> Any:
    """Run the statement in `sql/<name>.sql` in an SQLAlchemy transaction."""
    return await connection.exec_driver_sql(source(name), arguments)


@cache
def parse(written: str) -> Statement:
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    text = _ARGUMENT.sub(number, _COMMENT.sub("", written))
    return Statement(cast("LiteralString", text), tuple(names), (PyFormat.AUTO,) * len(names))
