"""How commands speak: results on standard output, everything about the run on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson

from orchestrator.settings.environment import read_variable

UNWRAPPED_COLUMNS = 1_000


def say(message: str) -> None:
    """A line about the run itself."""
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON value on one line."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as wide as the terminal; without a terminal every row is one line."""
    from rich import box  # noqa: PLC0415  # slow to import
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=UNWRAPPED_COLUMNS)
    console.print(table)


def note_models() -> None:
    """Say so when no model is configured."""
    if not (read_variable("OPENAI_API_KEY") or read_variable("OPENAI_BASE_URL")):
        say("No OPENAI_API_KEY: running on System 1 and direct mode, without a language model.")
