"""Print results on standard output, and progress on standard error."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

UNWRAPPED_COLUMNS = 100_000
NARROW = 10
"""Minimum width to which a text column shrinks, in characters."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Records, printed as one JSON object per line or as a table of `columns`.

    `columns`: names of the members to show. Default: the first record's members. `value`: replaces the records in
    JSON output, unless it is None. `head`: text above the table.
    """

    records: Sequence[Mapping[str, Any]]
    columns: Sequence[str] = ()
    value: Any = None
    head: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A result. `value`: printed with ``--json``. `text`: printed without it."""

    value: Any
    text: str


def print_result(result: Any, *, as_json: bool) -> None:
    """Print `Rows` or an `Answer` as text or JSON, and any other value as JSON. Print nothing for None."""
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
    """Print a value as one line of JSON, or a list as one line per item."""
    for item in value if isinstance(value, list) else [value]:
        sys.stdout.write(orjson.dumps(item).decode() + "\n")
    sys.stdout.flush()


def print_prompts(prompts: Mapping[str, Any]) -> None:
    """Print a table of each prompt's model calls and tokens per call. Print nothing if there are no prompts."""
    if prompts:
        rows = [[name, use["calls"], use["tokens_a_call"]] for name, use in prompts.items()]
        print_table(("prompt", "calls", "tokens per call, including the answer"), rows)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table that fits the terminal. If the output is not a terminal, print each row on one line.

    IDs are never wrapped, so that users can copy them. If the table doesn't fit the terminal without wrapping
    IDs, print each cell on a separate line.
    """
    from rich import box  # noqa: PLC0415  # slow to import
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=UNWRAPPED_COLUMNS)
    elif cells and _least_width(columns, cells) > console.width:
        print("\n\n".join(as_lines(dict(zip(columns, row, strict=True))) for row in cells))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=_is_identifier(name), overflow="fold")
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _is_identifier(column: str) -> bool:
    return column.endswith("_id")


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the table's width in characters if IDs are complete and other columns shrink to `NARROW`."""
    return sum(
        2 + max(len(row[place]) if _is_identifier(name) else min(len(row[place]), NARROW) for row in rows)
        for place, name in enumerate(columns)
    )


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar labeled `what` on a terminal. Yield a function that takes the finished and total counts."""
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def as_lines(facts: Mapping[str, Any]) -> str:
    return "\n".join(f"{name:<12} {'' if value is None else value}" for name, value in facts.items())


def say(message: str) -> None:
    """Print a message on standard error."""
    print(message, file=sys.stderr, flush=True)


def _print_rows(rows: Rows) -> None:
    if rows.head:
        print(rows.head)
    if rows.records:
        shown = rows.columns or tuple(rows.records[0])
        print_table(shown, [[record.get(name) for name in shown] for record in rows.records])
    else:
        print("No results.")
