"""How commands speak: results on standard output, everything about the run on standard error."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

UNWRAPPED_COLUMNS = 100_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Records: each whole as one JSON object per line, or a table of some of their members.

    `value`: what JSON shows instead of the records. `head`: text above the table.
    """

    records: Sequence[Mapping[str, Any]]
    columns: Sequence[str] = ()
    value: Any = None
    head: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A value as JSON, or as text."""

    value: Any
    text: str


def print_result(result: Any, *, as_json: bool) -> None:
    """Print `Rows`, an `Answer`, or any other value as JSON; nothing for None."""
    match result:
        case None:
            return
        case Answer(value, text):
            if as_json:
                print_json(value)
            elif text:
                print(text)
        case Rows(records, _, value):
            if as_json:
                print_json(list(records) if value is None else value)
            else:
                _print_rows(result)
        case _:
            print_json(result)


def print_json(value: Any) -> None:
    """Print one JSON value on one line; of a list every item."""
    for item in value if isinstance(value, list) else [value]:
        sys.stdout.write(orjson.dumps(item).decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table as wide as the terminal; without a terminal every row is one line."""
    from rich import box  # noqa: PLC0415  # slow to import
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=UNWRAPPED_COLUMNS)
    console.print(table)


def as_lines(facts: Mapping[str, Any]) -> str:
    """Write each member on a line of its own."""
    return "\n".join(f"{name:<12} {'' if value is None else value}" for name, value in facts.items())


def say(message: str) -> None:
    """Print a line about the run itself."""
    print(message, file=sys.stderr, flush=True)


def _print_rows(rows: Rows) -> None:
    if rows.head:
        print(rows.head)
    if rows.records:
        shown = rows.columns or tuple(rows.records[0])
        print_table(shown, [[record.get(name) for name in shown] for record in rows.records])
    else:
        print("none")
